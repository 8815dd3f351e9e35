import type { ClientAnswer } from '#src/directory/clients/schema.ts'
import { applicationOf, type Snippet, snippets } from '#src/directory/clients/snippets.ts'
import { serverProgram } from '../limits.ts' with { type: 'macro' }
import { Card, Code, Value } from '../parts.tsx'
import { serverProgramFor } from '../server-program.ts'
import { issuer } from '../session.ts'
import { inEnglish, words } from '../words.ts'

type Client = (typeof ClientAnswer)['_output']

/**
 * Shows a command with a button that copies it. Shows the command `gatehouse guide SUBJECT` as a link to the
 * page SUBJECT of the console's guide.
 */
const Command = ({ text }: { text: string }) => {
  const subject = text.split('gatehouse guide ')[1]
  return subject ? (
    <a href={`/console/guide/${subject}`}>
      <code>{text}</code>
    </a>
  ) : (
    <Value text={text} />
  )
}

const program = serverProgram()
const PLACEHOLDER = 'YOUR_SECRET'
/**
 * Part of the title of login.mjs. It says where to find app.mjs, the server program that uses login.mjs. When
 * this card shows app.mjs too, {@link BELOW} replaces this part.
 */
const ELSEWHERE = /The\s+server that uses login\.mjs is in/
const BELOW = 'app.mjs below uses login.mjs; both are in'

/**
 * Returns the guide's server program, adapted to the client's first redirect URI, and the command that starts
 * it. Returns an empty list when the client is not a web application, when its first redirect URI is not at
 * http://localhost or http://127.0.0.1, and when the program uses the path of this URI for another purpose.
 */
const serverOf = (
  { kind, redirect_uris: [uri = ''] }: Client,
  secret = '',
): Pick<Snippet, 'title' | 'code'>[] => {
  const url = URL.parse(uri)
  const isHere = url?.protocol === 'http:' && ['localhost', '127.0.0.1'].includes(url.hostname)
  if (kind !== 'web' || !isHere || ['/', '/logout'].includes(url.pathname)) return []
  return [
    {
      title: 'app.mjs, a server that uses login.mjs. Save it in the same folder. This is app.mjs:',
      code: serverProgramFor(program, url),
    },
    {
      title: `Start app.mjs in that folder. Open ${url.origin} in a private window, because this window is already signed in:`,
      code: `CLIENT_SECRET=${secret} node app.mjs`,
    },
  ]
}

/**
 * Shows programs that sign users in, or programs of a service that request a token. The values of this client
 * are filled in. Shows nothing for a client without a kind.
 */
export const Snippets = ({ client, secret }: { client: Client; secret?: string | undefined }) => {
  const { kind } = client
  if (!kind) return null
  const own = secret ?? (client.type === 'confidential' ? PLACEHOLDER : undefined)
  const application = applicationOf(issuer, { ...client, kind }, client.organization_id, own)
  const server = serverOf(client, own)
  const all = [
    // Programs read the secret from an environment variable, so the shell command sets this variable.
    ...snippets(application).map(snippet =>
      snippet.language === 'sh'
        ? { title: 'curl:', code: `export CLIENT_SECRET=${own}\n${snippet.code}` }
        : { ...snippet, title: server[0] ? snippet.title.replace(ELSEWHERE, BELOW) : snippet.title },
    ),
    ...server,
  ]
  return (
    <Card
      title={words.newClient.program}
      lead={own === PLACEHOLDER ? words.newClient.programNoSecret : words.newClient.programLead}
    >
      <div class="stack">
        {all.map(({ title, code }) => (
          <div key={title}>
            <p class="hint" {...inEnglish}>
              {title.split('`').map((part, i) => (i % 2 ? <Command key={part} text={part} /> : part))}
            </p>
            <Code text={code} />
          </div>
        ))}
      </div>
    </Card>
  )
}
