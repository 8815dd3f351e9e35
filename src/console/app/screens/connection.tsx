import { useState } from 'preact/hooks'
import { useAction } from '../action.ts'
import { withQuery } from '../api.ts'
import { ApiForm } from '../api-form.tsx'
import { curlOf } from '../curl.ts'
import { Field } from '../fields.tsx'
import { Icon } from '../icons.tsx'
import { AsCurl, Badge, Card, Refused, Value } from '../parts.tsx'
import { words } from '../words.ts'

const { connection: text } = words

interface Check {
  name: keyof typeof text.names
  status: keyof typeof text.status
  message: string
  value?: string
}
interface Tested {
  ok: boolean
  checks: Check[]
}

const tones = { good: 'good', bad: 'bad', warning: 'warn', unknown: 'plain', info: 'plain' } as const

const Row = ({ name, status, message, value }: Check) => (
  <li>
    <Badge tone={tones[status]}>{text.status[status]}</Badge>
    <span>
      <strong>{text.names[name]}</strong>
      <span class="hint">{message}</span>
      {value && (status === 'info' ? <Value text={value} /> : <code>{value}</code>)}
    </span>
  </li>
)

/** Tests the connection to an identity provider and shows the result of each check. */
export const Connection = ({ id, isSaml }: { id: string; isSaml: boolean }) => {
  const [metadata_url, setMetadataUrl] = useState('')
  const [tested, setTested] = useState<Tested>()
  const { run, problem, dialog } = useAction<Tested>(setTested)
  const path = withQuery(`/identity-providers/${id}/connection`, { metadata_url: metadata_url.trim() })
  const test = () => {
    setTested(undefined)
    void run('GET', path)
  }
  return (
    <Card title={text.title} lead={text.lead}>
      <ApiForm method="GET" path={path} problem={problem} class="trial" onSubmit={test}>
        {isSaml && (
          <Field
            name="metadata_url"
            label={text.metadataUrl}
            hint={text.metadataHint}
            autocomplete="off"
            spellcheck={false}
            value={metadata_url}
            onValue={setMetadataUrl}
          />
        )}
        <Refused problem={problem} />
        <div class="buttons">
          <button type="submit" disabled={dialog.isBusy}>
            {dialog.isBusy ? text.testing : text.test}
          </button>
        </div>
      </ApiForm>
      <div role="status">
        {tested && (
          <>
            <hr />
            <p class={tested.ok ? 'verdict good' : 'verdict bad'}>
              <Icon name={tested.ok ? 'check' : 'alert'} />
              <strong>{tested.ok ? text.works : text.fails}</strong>
            </p>
            <ul class="findings flat">
              {tested.checks.map(check => (
                <Row key={check.name + check.message} {...check} />
              ))}
            </ul>
          </>
        )}
      </div>
      <AsCurl text={curlOf('GET', path)} />
    </Card>
  )
}
