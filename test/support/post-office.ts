import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

const LINK = /http:\/\/localhost:\d+\/account\/[\w-]+\?token=[\w-]{43}(?:&request=[\w-]+)?/

/**
 * Starts a real SMTP server. `linkIn` waits for the next mail with this text in the subject, and returns the
 * link in that mail.
 */
export const startPostOffice = async () => {
  const letters: string[] = []
  let arrived = Promise.withResolvers<void>()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData: (stream, _, done) => {
      let text = ''
      stream.on('data', chunk => {
        text += chunk
      })
      stream.on('end', () => {
        letters.push(text.replace(/=\r?\n/g, '').replace(/=3D/g, '='))
        arrived.resolve()
        done()
      })
    },
  })
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  const { port } = server.server.address() as AddressInfo
  return {
    settings: {
      GATEHOUSE_SMTP_URL: `smtp://127.0.0.1:${port}`,
      GATEHOUSE_MAIL_FROM: 'Gatehouse <id@example.com>',
    },
    linkIn: async (subject: string): Promise<string> => {
      for (;;) {
        const at = letters.findIndex(letter => /^Subject: (.*)$/m.exec(letter)?.[1]?.includes(subject))
        if (at >= 0) return LINK.exec(letters.splice(at, 1)[0] ?? '')?.[0] ?? ''
        arrived = Promise.withResolvers()
        await arrived.promise
      }
    },
    close: () => server.close(),
  }
}
