import type { Transporter } from 'nodemailer'
import type { Config } from '#src/config.ts'
import type { MailTransport } from '#src/context.ts'
import { MINUTE, SECOND } from '#src/lib/duration.ts'

/** Milliseconds to wait for the connection and for the greeting. */
const TIMEOUT = 10 * SECOND
/**
 * Milliseconds to wait for each answer when a mail is sent. Filters may scan a mail before the server
 * answers. If the client stops waiting before the answer arrives, the server may already have accepted the
 * mail, and gets the mail again at each attempt: https://www.rfc-editor.org/rfc/rfc5321#section-4.5.3.2. With
 * the ten minutes of the RFC, a server that hangs would delay the other mails of the organization for longer
 * than a code is valid.
 */
export const ANSWER_TIMEOUT = 2 * MINUTE
/**
 * Milliseconds for all answers of an attempt together, after which the connection is closed. Otherwise a
 * server that delays each answer would get the mail again from another sender, when the lease has ended
 * (mail/outbox.ts).
 */
const SEND_TIMEOUT = 3.5 * MINUTE

/**
 * Returns the options of the SMTP connection. Mails contain sign-in links. A mail server on another machine
 * must therefore use TLS. Otherwise an attacker could remove STARTTLS from the server's answer and read the
 * mails. `?requireTLS=false` in the URL turns the requirement off. `socketTimeout` is the time to wait for
 * each answer. The default is short, because a caller waits for a check of the mail server.
 */
export const smtpOptions = (smtp_url: string, socketTimeout = TIMEOUT) => ({
  url: smtp_url,
  requireTLS: !/^(?:localhost|127\.[\d.]+|\[::1\])$/.test(URL.parse(smtp_url)?.hostname ?? ''),
  connectionTimeout: TIMEOUT,
  greetingTimeout: TIMEOUT,
  socketTimeout,
  disableFileAccess: true,
  disableUrlAccess: true,
})

/**
 * Returns the transport to the configured mail server. Returns undefined when the server or the sender is not
 * set. The first mail loads the library. mail/outbox.ts decides when a failed mail is tried again.
 */
export const smtpTransport = ({
  smtp_url,
  mail_from,
}: Pick<Config, 'smtp_url' | 'mail_from'>): MailTransport | undefined => {
  if (!smtp_url || !mail_from) return undefined
  let transporter: Promise<Transporter> | undefined
  const open = async () => {
    const { createTransport } = await import('nodemailer')
    return createTransport(smtpOptions(smtp_url, ANSWER_TIMEOUT))
  }
  return {
    send: async mail => {
      transporter ??= open()
      await (await transporter).sendMail({
        from: mail_from,
        ...mail,
        signal: AbortSignal.timeout(SEND_TIMEOUT),
        // Prevents automatic replies: https://www.rfc-editor.org/rfc/rfc3834#section-5
        headers: { 'Auto-Submitted': 'auto-generated' },
      })
    },
  }
}
