import { useState } from 'preact/hooks'
import type { ClientAnswer } from '#src/directory/clients/schema.ts'
import { asProblem, callApi, type Problem } from '../api.ts'
import { AsCode } from '../as-code.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useObject } from '../hooks.ts'
import {
  Badge,
  Card,
  Check,
  Choice,
  Confirm,
  Copy,
  Dialog,
  Failure,
  Field,
  Heading,
  Loading,
  Value,
} from '../parts.tsx'
import { announce, go } from '../router.ts'
import { show } from '../toast.tsx'
import { words } from '../words.ts'
import { Admission, Claims } from './admission.tsx'
import { kindNames } from './clients.tsx'
import { Snippets } from './snippets.tsx'

type Client = (typeof ClientAnswer)['_output']

const lines = (text: string): string[] => text.split('\n').flatMap(line => line.trim() || [])

const kindOptions = [['', 'Not chosen'], ...Object.entries(kindNames)] as [string, string][]

const Settings = ({ client, loaded }: { client: Client; loaded: Loaded<Client> }) => {
  const path = `/clients/${encodeURIComponent(client.client_id)}`
  const edit = useEdit<Client>(path, client, loaded.etag, loaded)
  const { values, set, problem } = edit
  const [texts, setTexts] = useState<Record<string, string>>({})
  type Uris = 'redirect_uris' | 'post_logout_redirect_uris' | 'web_origins'
  const uris = (name: Uris, label: string, hint: string) => (
    <Field
      name={name}
      label={label}
      hint={hint}
      multiline={3}
      spellcheck={false}
      value={edit.isChanged ? (texts[name] ?? values[name].join('\n')) : values[name].join('\n')}
      problem={problem}
      onValue={text => {
        setTexts({ ...texts, [name]: text })
        set({ [name]: lines(text) })
      }}
    />
  )
  const seconds = (name: 'access_token_ttl' | 'refresh_token_ttl', label: string) => (
    <Field
      name={name}
      label={label}
      type="number"
      value={String(values[name])}
      problem={problem}
      onValue={text => set({ [name]: Number(text) })}
    />
  )
  const logsIn = values.grant_types.includes('authorization_code')
  return (
    <EditForm edit={edit} path={path} stored={client}>
      <Card title="Settings">
        <Field
          name="name"
          label="Name"
          value={values.name}
          problem={problem}
          onValue={name => set({ name })}
        />
        <Field
          name="description"
          label="Description"
          hint="People see it when they are asked for consent."
          multiline={2}
          value={values.description}
          problem={problem}
          onValue={description => set({ description })}
        />
        <Choice
          label="Kind"
          value={values.kind ?? ''}
          options={kindOptions}
          onValue={kind => set({ kind: (kind || null) as Client['kind'] })}
        />
      </Card>
      {logsIn && (
        <Card title="Addresses" lead="One a line, compared exactly.">
          {uris('redirect_uris', 'Redirect URIs', 'Where people come back to after the login.')}
          {uris('post_logout_redirect_uris', 'After a logout', 'Where a logout may lead to.')}
          {uris(
            'web_origins',
            'Web origins',
            'Pages whose scripts may read tokens, such as https://app.example.com.',
          )}
        </Card>
      )}
      <Card title="Tokens">
        <Field
          name="scopes"
          label="Scopes"
          hint="Separated by spaces. A permission such as users:read opens the admin API."
          spellcheck={false}
          value={texts.scopes !== undefined && edit.isChanged ? texts.scopes : values.scopes.join(' ')}
          problem={problem}
          onValue={text => {
            setTexts({ ...texts, scopes: text })
            set({ scopes: text.split(/\s+/).filter(Boolean) })
          }}
        />
        <div class="pair">
          {seconds('access_token_ttl', 'Access token, seconds')}
          {seconds('refresh_token_ttl', 'Refresh token, seconds')}
        </div>
        {logsIn && (
          <Check
            label="Ask people for consent"
            hint="For applications of others; your own need none."
            checked={values.consent_required}
            onChecked={consent_required => set({ consent_required })}
          />
        )}
      </Card>
      <Claims
        key={edit.version}
        organization_id={values.organization_id}
        claims={values.claims}
        problem={problem}
        onClaims={claims => set({ claims })}
      />
      {logsIn && <Admission client={values} problem={problem} onChange={set} />}
    </EditForm>
  )
}

const Safety = ({ client }: { client: Client }) => {
  const [step, setStep] = useState<'secret' | 'delete'>()
  const [secret, setSecret] = useState<string>()
  const [problem, setProblem] = useState<Problem>()
  const [isBusy, setBusy] = useState(false)
  const path = `/clients/${encodeURIComponent(client.client_id)}`
  const run = async (): Promise<void> => {
    setBusy(true)
    setProblem(undefined)
    try {
      if (step === 'secret')
        setSecret((await callApi<{ client_secret: string }>('POST', `${path}/secret`)).data.client_secret)
      else {
        await callApi('DELETE', path)
        show(`${client.name} was deleted`)
        go('/console/clients')
        announce()
      }
      setStep(undefined)
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  const isDeletion = step === 'delete'
  return (
    <Card title="Secret and deletion">
      <div class="buttons">
        {client.type === 'confidential' && (
          <button type="button" onClick={() => setStep('secret')}>
            Make a new secret
          </button>
        )}
        <a class="button" href={`/console/events?target_id=${encodeURIComponent(client.client_id)}`}>
          Events
        </a>
        <button type="button" class="danger" onClick={() => setStep('delete')}>
          Delete
        </button>
      </div>
      {step && (
        <Confirm
          title={isDeletion ? `Delete ${client.name}?` : 'Make a new secret?'}
          text={
            isDeletion
              ? 'Its sessions and tokens end, and people can no longer log in to it.'
              : 'The old one stops working at once: the application fails until it has the new one.'
          }
          action={isDeletion ? 'Delete' : 'Make it'}
          {...(isDeletion ? { typed: client.client_id } : {})}
          problem={problem}
          isBusy={isBusy}
          onConfirm={() => void run()}
          onClose={() => setStep(undefined)}
        />
      )}
      {secret && (
        <Dialog title="The new secret" onClose={() => setSecret(undefined)}>
          <p>Shown only now: the server keeps a hash of it.</p>
          <p class="value">
            <code>{secret}</code>
          </p>
          <div class="dialog-actions">
            <Copy text={secret} label={words.common.copy} />
            <button type="button" class="primary" onClick={() => setSecret(undefined)}>
              {words.common.close}
            </button>
          </div>
        </Dialog>
      )}
    </Card>
  )
}

export const ClientScreen = ({ id }: { id: string }) => {
  const loaded = useObject<Client>(`/clients/${encodeURIComponent(id)}`)
  const back = { href: '/console/clients', label: words.nav.clients }
  const client = loaded.data
  if (!client)
    return (
      <>
        <Heading title="Application" back={back} />
        <Card>
          {loaded.problem ? <Failure problem={loaded.problem} retry={loaded.reload} /> : <Loading />}
        </Card>
      </>
    )
  return (
    <>
      <Heading
        title={client.name}
        back={back}
        badge={<Badge>{client.kind ? kindNames[client.kind] : client.type}</Badge>}
        lead={<Value text={client.client_id} />}
      />
      <div class="columns">
        <Settings client={client} loaded={loaded} />
        <div class="stack">
          <Snippets client={client} />
          <Safety client={client} />
          <AsCode
            section="clients"
            path={`/clients/${encodeURIComponent(client.client_id)}`}
            object={client}
          />
        </div>
      </div>
    </>
  )
}
