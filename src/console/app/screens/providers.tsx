import { useState } from 'preact/hooks'
import { useAction } from '../action.ts'
import { AsCode } from '../as-code.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useList, useObject } from '../hooks.ts'
import { ListCard } from '../list.tsx'
import { NewDialog } from '../new-dialog.tsx'
import {
  Badge,
  Card,
  Check,
  Choice,
  Confirm,
  Empty,
  Failure,
  Field,
  Heading,
  Icon,
  Loading,
  Value,
} from '../parts.tsx'
import { announce, go } from '../router.ts'
import { issuer } from '../session.ts'
import { say, words } from '../words.ts'

/** A provider, as the admin API returns it; each type has more fields. */
interface Provider {
  id: string
  alias: string
  name: string
  type: 'oidc' | 'oauth2' | 'saml'
  enabled: boolean
  allow_registration: boolean
  trust_email: boolean
  client_id?: string
  issuer?: string
  entity_id?: string
  sso_url?: string
  certificates?: { subject: string; fingerprint: string; expires_at: string; expired: boolean }[]
}

type Kind = 'google' | 'microsoft' | 'github' | 'gitlab' | 'discord' | 'oidc' | 'saml'

const kinds: [Kind, label: string, type: Provider['type']][] = [
  ['google', 'Google', 'oidc'],
  ['microsoft', 'Microsoft', 'oidc'],
  ['gitlab', 'GitLab', 'oidc'],
  ['github', 'GitHub', 'oauth2'],
  ['discord', 'Discord', 'oauth2'],
  ['oidc', words.providers.otherProvider, 'oidc'],
  ['saml', 'SAML 2.0', 'saml'],
]

const typeNames = { oidc: 'OpenID Connect', oauth2: 'OAuth 2.0', saml: 'SAML 2.0' }

/** Shows the callback address to register at the provider. */
const returnAddress = ({ type, alias }: Pick<Provider, 'type' | 'alias'>): string =>
  type === 'saml' ? `${issuer}/saml/${alias}/acs` : `${issuer}/oauth/social/${alias}/callback`

interface Draft {
  kind: Kind
  name: string
  alias: string
  client_id: string
  client_secret: string
  issuer: string
  metadata_url: string
}

const empty: Draft = {
  kind: 'google',
  name: 'Google',
  alias: 'google',
  client_id: '',
  client_secret: '',
  issuer: '',
  metadata_url: '',
}

const typeOf = (kind: Kind): Provider['type'] => kinds.find(([name]) => name === kind)?.[2] ?? 'oidc'

/** Creates a provider that is disabled, so that an administrator can check it before users see it. */
const bodyOf = ({ kind, name, alias, client_id, client_secret, issuer, metadata_url }: Draft) => {
  const common = { type: typeOf(kind), name, alias, enabled: false }
  if (kind === 'saml') return { ...common, metadata_url }
  const known = kind === 'oidc' ? { issuer } : { preset: kind }
  return { ...common, ...known, client_id, client_secret }
}

export const ProvidersScreen = () => {
  const list = useList<Provider>('/identity-providers', { limit: 50 })
  const [draft, setDraft] = useState<Draft>()
  const set = (change: Partial<Draft>) => draft && setDraft({ ...draft, ...change })
  return (
    <>
      <Heading title={words.nav.providers} lead={words.providers.lead}>
        <button type="button" class="primary" onClick={() => setDraft(empty)}>
          <Icon name="plus" /> {words.providers.add}
        </button>
      </Heading>
      <ListCard
        list={list}
        empty={
          <Empty title={words.providers.none} icon="providers">
            {words.providers.noneText}
          </Empty>
        }
        row={provider => (
          <li key={provider.id}>
            <a class="row link" href={`/console/identity-providers/${provider.alias}`}>
              <span>
                <strong>{provider.name}</strong>
                <span class="hint">{typeNames[provider.type]}</span>
              </span>
              <Badge tone={provider.enabled ? 'good' : 'plain'}>
                {provider.enabled ? words.providers.on : words.providers.off}
              </Badge>
              <Icon name="right" />
            </a>
          </li>
        )}
      />
      {draft && (
        <NewDialog<Provider>
          title={words.providers.add}
          path="/identity-providers"
          body={bodyOf(draft)}
          onMade={({ alias }) => {
            go(`/console/identity-providers/${alias}`)
            announce()
          }}
          onClose={() => setDraft(undefined)}
        >
          {problem => {
            const field = (name: Exclude<keyof Draft, 'kind'>, label: string, hint = '') => (
              <Field
                name={name}
                label={label}
                hint={hint}
                required
                autocomplete="off"
                spellcheck={false}
                value={draft[name]}
                problem={problem}
                onValue={value => set({ [name]: value })}
              />
            )
            return (
              <>
                <Choice
                  label={words.providers.provider}
                  value={draft.kind}
                  options={kinds.map(([kind, label]) => [kind, label] as const)}
                  onValue={value => {
                    const [kind, label] = kinds.find(([name]) => name === value) ?? ['oidc', '']
                    const isKnown = kind !== 'oidc' && kind !== 'saml'
                    set({ kind: kind as Kind, name: isKnown ? label : '', alias: isKnown ? kind : '' })
                  }}
                />
                {field('name', words.common.name, words.providers.nameHint)}
                {field('alias', words.providers.alias, words.providers.aliasHint)}
                {draft.kind === 'saml' ? (
                  field('metadata_url', words.providers.metadata)
                ) : (
                  <>
                    {draft.kind === 'oidc' && field('issuer', words.providers.issuer)}
                    {field('client_id', words.providers.clientId)}
                    {field('client_secret', words.providers.clientSecret)}
                  </>
                )}
                <p class="hint">
                  {words.providers.register}{' '}
                  <code>{returnAddress({ type: typeOf(draft.kind), alias: draft.alias || 'ALIAS' })}</code>
                </p>
              </>
            )
          }}
        </NewDialog>
      )}
    </>
  )
}

const Form = ({ provider, loaded }: { provider: Provider; loaded: Loaded<Provider> }) => {
  const path = `/identity-providers/${provider.id}`
  const edit = useEdit<Provider>(path, provider, loaded.etag, loaded)
  const { values, set, problem } = edit
  return (
    <EditForm edit={edit} path={path} stored={provider}>
      <Card title={words.providers.login}>
        <Check
          label={words.providers.on}
          hint={words.providers.onHint}
          checked={values.enabled}
          onChecked={enabled => set({ enabled })}
        />
        <Check
          label={words.providers.provision}
          hint={words.providers.provisionHint}
          checked={values.allow_registration}
          onChecked={allow_registration => set({ allow_registration })}
        />
        <Check
          label={words.providers.trusted}
          hint={words.providers.trustedHint}
          checked={values.trust_email}
          onChecked={trust_email => set({ trust_email })}
        />
      </Card>
      <Card title={words.common.settings}>
        <Field
          name="name"
          label={words.common.name}
          value={values.name}
          problem={problem}
          onValue={name => set({ name })}
        />
        {values.client_id !== undefined && (
          <Field
            name="client_id"
            label={words.providers.clientId}
            spellcheck={false}
            value={values.client_id}
            problem={problem}
            onValue={client_id => set({ client_id })}
          />
        )}
        <dl class="facts">
          <div>
            <dt>{words.providers.here}</dt>
            <dd>
              <Value text={returnAddress(provider)} />
            </dd>
          </div>
          {(provider.issuer || provider.entity_id) && (
            <div>
              <dt>{words.providers.provider}</dt>
              <dd>
                <code>{provider.issuer || provider.entity_id}</code>
              </dd>
            </div>
          )}
          {provider.certificates?.map(({ fingerprint, subject, expires_at, expired }) => (
            <div key={fingerprint}>
              <dt>{words.providers.certificate}</dt>
              <dd>
                {subject}{' '}
                <Badge tone={expired ? 'warn' : 'plain'}>
                  {say(words.providers.until, { date: expires_at.slice(0, 10) })}
                </Badge>
              </dd>
            </div>
          ))}
        </dl>
      </Card>
    </EditForm>
  )
}

export const ProviderScreen = ({ id }: { id: string }) => {
  const loaded = useObject<Provider>(`/identity-providers/${encodeURIComponent(id)}`)
  const [isAsked, setAsked] = useState(false)
  const removal = useAction(() => {
    go('/console/identity-providers')
    announce()
  })
  const back = { href: '/console/identity-providers', label: words.nav.providers }
  const provider = loaded.data
  if (!provider)
    return (
      <>
        <Heading title={words.providers.one} back={back} />
        <Card>
          {loaded.problem ? <Failure problem={loaded.problem} retry={loaded.reload} /> : <Loading />}
        </Card>
      </>
    )
  const { name } = provider
  return (
    <>
      <Heading
        title={name}
        back={back}
        badge={
          <Badge tone={provider.enabled ? 'good' : 'plain'}>
            {provider.enabled ? words.providers.on : words.providers.off}
          </Badge>
        }
        lead={typeNames[provider.type]}
      >
        <button type="button" class="danger" onClick={() => setAsked(true)}>
          {words.common.delete}
        </button>
      </Heading>
      <div class="narrow stack">
        <Form provider={provider} loaded={loaded} />
        <AsCode section="identity_providers" path={`/identity-providers/${provider.id}`} object={provider} />
      </div>
      {isAsked && (
        <Confirm
          title={say(words.common.deleteOne, { name })}
          text={words.providers.deleteText}
          action={words.common.delete}
          typed={provider.alias}
          {...removal.dialog}
          onConfirm={() =>
            void removal.run(
              'DELETE',
              `/identity-providers/${provider.id}`,
              say(words.common.deleted, { name }),
            )
          }
          onClose={() => setAsked(false)}
        />
      )}
    </>
  )
}
