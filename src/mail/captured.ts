import type { Mail, MailTransport } from '#src/context.ts'

export interface CapturedMail extends MailTransport {
  /** The latest last. */
  readonly mails: readonly Mail[]
  clear(): void
}

/** Keeps mail instead of sending it, for development and tests: `limit` of them, the oldest go first. */
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
