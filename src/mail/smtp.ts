import type { Transporter } from 'nodemailer'
import type { Config } from '#src/config.ts'
import type { MailTransport } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'

/** Milliseconds to connect, to be greeted, and without an answer: mail is sent in the background. */
const TIMEOUT = 10 * SECOND

/**
 * Returns the options of the SMTP connection. Mails contain sign-in links, so TLS is required beyond this
 * machine: a server without STARTTLS is refused, because an attacker may have stripped it, unless the URL
 * ends in `?requireTLS=false`.
 */
export const smtpOptions = (smtp_url: string) => ({
  url: smtp_url,
  requireTLS: !/^(?:localhost|127\.[\d.]+|\[::1\])$/.test(URL.parse(smtp_url)?.hostname ?? ''),
  connectionTimeout: TIMEOUT,
  greetingTimeout: TIMEOUT,
  socketTimeout: TIMEOUT,
  disableFileAccess: true,
  disableUrlAccess: true,
})

/**
 * Returns the transport to the configured mail server; undefined without one. The first mail loads the
 * library.
 */
export const smtpTransport = ({
  smtp_url,
  mail_from,
}: Pick<Config, 'smtp_url' | 'mail_from'>): MailTransport | undefined => {
  if (!smtp_url || !mail_from) return undefined
  let transporter: Promise<Transporter> | undefined
  const open = async () => {
    const { createTransport } = await import('nodemailer')
    return createTransport(smtpOptions(smtp_url))
  }
  return {
    send: async mail => {
      transporter ??= open()
      await (await transporter).sendMail({
        from: mail_from,
        ...mail,
        // Prevents automatic replies: https://www.rfc-editor.org/rfc/rfc3834#section-5
        headers: { 'Auto-Submitted': 'auto-generated' },
      })
    },
  }
}
