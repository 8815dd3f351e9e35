import type { Mail, MailTransport } from '#src/context.ts'

/** A mail transport that keeps mails instead of sending them. */
export interface CapturedMail extends MailTransport {
  /** The captured mails, in the order of sending. */
  readonly mails: readonly Mail[]
  clear(): void
}

/**
 * Captures mail instead of sending it, for development and tests. Keeps the latest `limit` mails, so that the
 * memory of a server that runs for days stays bounded. The default of 200 is more than enough, because a test
 * or person reads a mail soon after it was sent.
 */
export const captureMail = (limit = 200): CapturedMail => {
  const mails: Mail[] = []
  return {
    mails,
    send: async mail => {
      mails.push(mail)
      if (mails.length > limit) mails.shift()
    },
    clear: () => {
      mails.length = 0
    },
  }
}
