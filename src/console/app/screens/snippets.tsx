import type { ClientAnswer } from '#src/directory/clients/schema.ts'
import { applicationOf, serverSnippet, snippets } from '#src/directory/clients/snippets.ts'
import { Card, Code } from '../parts.tsx'
import { issuer } from '../session.ts'
import { words } from '../words.ts'

type Client = (typeof ClientAnswer)['_output']

/** Shows a command; a page of the guide opens in the console. */
const Command = ({ text }: { text: string }) => {
  const subject = text.split('gatehouse guide ')[1]
  return subject ? (
    <a href={`/console/guide/${subject}`}>
      <code>{text}</code>
    </a>
  ) : (
    <code>{text}</code>
  )
}

/** Shows programs that log in with this client, with its values filled in. */
export const Snippets = ({ client, secret }: { client: Client; secret?: string | undefined }) => {
  const { kind } = client
  if (!kind) return null
  const own = secret ?? (client.type === 'confidential' ? 'YOUR_SECRET' : undefined)
  const application = applicationOf(issuer, { ...client, kind }, client.organization_id, own)
  const all = [...snippets(application), serverSnippet(application) ?? []].flat()
  return (
    <Card title={words.newClient.program} lead={words.newClient.programLead}>
      <div class="stack">
        {all.map(({ title, code }) => (
          <div key={title}>
            <p class="hint" lang="en" dir="ltr">
              {title.split('`').map((part, i) => (i % 2 ? <Command key={part} text={part} /> : part))}
            </p>
            <Code text={code} />
          </div>
        ))}
      </div>
    </Card>
  )
}
