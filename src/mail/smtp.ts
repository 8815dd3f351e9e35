import type { Transporter } from 'nodemailer'
import type { Config } from '#src/config.ts'
import type { MailTransport } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'

const PATIENCE = 10 * SECOND

/** The mail server of the settings; undefined without one. Its library is loaded for the first mail. */
export const smtpTransport = ({
  smtp_url,
  mail_from,
}: Pick<Config, 'smtp_url' | 'mail_from'>): MailTransport | undefined => {
  if (!smtp_url || !mail_from) return undefined
  let transporter: Promise<Transporter> | undefined
  const open = async () => {
    const { createTransport } = await import('nodemailer')
    return createTransport({
      url: smtp_url,
      connectionTimeout: PATIENCE,
      greetingTimeout: PATIENCE,
      socketTimeout: PATIENCE,
      disableFileAccess: true,
      disableUrlAccess: true,
    })
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
