import type { Transporter } from 'nodemailer'
import type { Config } from '#src/config.ts'
import type { MailTransport } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'

/**
 * Milliseconds to wait for the connection, for the greeting and for each answer. A request that causes a mail
 * is answered before the outbox sends the mail, so only the checks in `operations/health.ts` wait for the
 * mail server.
 */
const TIMEOUT = 10 * SECOND

/**
 * Returns the options of the SMTP connection. Mails contain sign-in links. A mail server on another machine
 * must therefore use TLS. Otherwise an attacker could remove STARTTLS from the server's answer and read the
 * mails. `?requireTLS=false` in the URL turns the requirement off.
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
 * Returns the transport to the configured mail server; undefined when the server or the sender is not set.
 * The first mail loads the library. mail/outbox.ts decides when a failed mail is tried again.
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
