import type { Transporter } from 'nodemailer'
import type { Config } from '#src/config.ts'
import type { MailTransport } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'

const PATIENCE = 10 * SECOND

/**
 * How the mail server is talked to. Links that let somebody in leave this machine under TLS alone: a server that offers no
 * STARTTLS (or to which somebody on the way says so) is refused, unless the address ends in `?requireTLS=false`.
 */
export const smtpOptions = (smtp_url: string) => ({
  url: smtp_url,
  requireTLS: !/^(?:localhost|127\.[\d.]+|\[::1\])$/.test(URL.parse(smtp_url)?.hostname ?? ''),
  connectionTimeout: PATIENCE,
  greetingTimeout: PATIENCE,
  socketTimeout: PATIENCE,
  disableFileAccess: true,
  disableUrlAccess: true,
})

/** The mail server of the settings; undefined without one. Its library is loaded for the first mail. */
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
        // RFC 3834 section 5: no machine shall answer a machine.
        headers: { 'Auto-Submitted': 'auto-generated' },
      })
    },
  }
}
