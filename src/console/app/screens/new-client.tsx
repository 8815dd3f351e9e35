import { useState } from 'preact/hooks'
import { type Kind, proposed } from '#src/directory/clients/kinds.ts'
import type { ClientAnswer } from '#src/directory/clients/schema.ts'
import { useAction } from '../action.ts'
import { ApiForm } from '../api-form.tsx'
import { curlOf } from '../curl.ts'
import { Field } from '../fields.tsx'
import { Icon } from '../icons.tsx'
import { OrganizationField } from '../organization-field.tsx'
import { AsCurl, Card, Heading, Refused, Value } from '../parts.tsx'
import { go, query, startVisit, useUnsaved } from '../router.ts'
import { issuer } from '../session.ts'
import { slugOf } from '../slug.ts'
import { say, words } from '../words.ts'
import { kindNames } from './clients.tsx'
import { Snippets } from './snippets.tsx'

type Client = (typeof ClientAnswer)['_output'] & { client_secret?: string }

const kinds: [Kind, text: string, redirect: string][] = [
  ['web', words.newClient.web, 'http://localhost:3000/callback'],
  ['spa', words.newClient.spa, 'http://localhost:5173/callback'],
  ['native', words.newClient.native, 'http://127.0.0.1/callback'],
  ['service', words.newClient.service, ''],
]

/**
 * True for a native application that has a redirect URI with a loopback address or a private-use scheme.
 * Another program on the device could receive the authorization response at such a URI, so users are asked
 * for consent: https://www.rfc-editor.org/rfc/rfc8252#section-8.6
 */
const isSharedAddress = (kind: Kind, redirect_uris: string[]): boolean =>
  kind === 'native' && redirect_uris.some(uri => !/^https:/i.test(uri))

const lines = (text: string): string[] => text.split('\n').flatMap(line => line.trim() || [])

const Fact = ({ name, value }: { name: string; value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>
      <Value text={value} />
    </dd>
  </div>
)

interface Values {
  name: string
  client_id?: string
  redirects?: string
  /** True when somebody outside the organization runs the application. Users are then asked for consent. */
  isForeign: boolean
}

/** Shows a new application with sample programs. The secret is shown only here. */
const Made = ({ client }: { client: Client }) => (
  <>
    <Heading
      title={say(words.newClient.done, { name: client.name })}
      back={{ href: '/console/clients', label: words.nav.clients }}
      lead={words.newClient.doneLead}
    >
      <a class="button" href={`/console/clients/${encodeURIComponent(client.client_id)}`}>
        {words.common.settings}
      </a>
    </Heading>
    <div class="stack medium">
      <Card>
        <dl class="facts">
          <Fact name={words.providers.issuer} value={issuer} />
          <Fact name={words.newClient.discovery} value={`${issuer}/.well-known/openid-configuration`} />
          <Fact name={words.newClient.id} value={client.client_id} />
          {client.client_secret && (
            <div>
              <dt>{words.newClient.secret}</dt>
              <dd>
                <Value text={client.client_secret} />
                <p class="hint">{words.client.secretOnce}</p>
              </dd>
            </div>
          )}
          {client.redirect_uris.map(uri => (
            <Fact key={uri} name={words.client.redirectUris} value={uri} />
          ))}
        </dl>
      </Card>
      <Snippets client={client} secret={client.client_secret} />
    </div>
  </>
)

/**
 * Links to a new application after a reload. If the application has a secret, says that the secret cannot be
 * shown again. The screen of the application can create a new secret.
 */
const MadeBefore = ({ id }: { id: string }) => (
  <>
    <Heading
      title={say(words.newClient.again, { id })}
      back={{ href: '/console/clients', label: words.nav.clients }}
      lead={query.value.has('secret') && words.newClient.againText}
    />
    <a class="button primary" href={`/console/clients/${encodeURIComponent(id)}`}>
      {words.client.one}
    </a>
  </>
)

const nothing: Values = { name: '', isForeign: false }

/** Screen that registers an application. */
export const NewClientScreen = () => {
  const [kind, setKind] = useState<Kind>('web')
  const [values, setValues] = useState(nothing)
  const [made, setMade] = useState<Client>()
  const owner = query.value.get('organization_id') ?? ''
  const [organization_id, setOwner] = useState(owner)
  const { run, problem, dialog } = useAction<Client>(client => {
    setMade(client)
    // A reload of this screen loses the secret. With the parameter `secret`, the reloaded screen says so.
    // With `made` it offers no form, in which the person could register the application again.
    const made = `made=${encodeURIComponent(client.client_id)}${client.client_secret ? '&secret' : ''}`
    go(`/console/clients/+new?${made}`, { replace: true })
    startVisit()
  })
  useUnsaved(!made && JSON.stringify(values) !== JSON.stringify(nothing))
  if (made) return <Made client={made} />
  const before = query.value.get('made')
  if (before) return <MadeBefore id={before} />
  const redirect = kinds.find(([name]) => name === kind)?.[2] ?? ''
  const { name, client_id = slugOf(name), redirects = redirect, isForeign } = values
  const isShared = isSharedAddress(kind, lines(redirects))
  const body = {
    client_id,
    name,
    ...(organization_id !== '' && { organization_id }),
    ...proposed(kind, lines(redirects)),
    ...(kind !== 'service' && { consent_required: isForeign || isShared }),
  }
  const owners: [isForeign: boolean, title: string, text: string][] = [
    [false, words.newClient.own, isShared ? words.newClient.ownNativeText : words.newClient.ownText],
    [true, words.newClient.foreign, words.newClient.foreignText],
  ]
  const set = (change: Partial<Values>) => setValues({ ...values, ...change })
  return (
    <>
      <Heading title={words.clients.connect} back={{ href: '/console/clients', label: words.nav.clients }} />
      <ApiForm
        path="/clients"
        problem={problem}
        class="form narrow"
        onSubmit={() => void run('POST', '/clients', say(words.common.added, { name }), body)}
      >
        <fieldset class="kinds">
          <legend>{words.client.kind}</legend>
          {kinds.map(([value, text]) => (
            <label key={value} class="kind">
              <input
                type="radio"
                name="kind"
                value={value}
                checked={kind === value}
                onChange={() => setKind(value)}
              />
              <Icon name={value} />
              <span>
                <strong>{kindNames[value]}</strong>
                <span class="hint">{text}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <Card>
          <Field
            name="name"
            label={words.common.name}
            hint={words.newClient.nameHint}
            autocomplete="off"
            value={name}
            onValue={value => set({ name: value })}
          />
          <Field
            name="client_id"
            label={words.newClient.id}
            hint={words.newClient.idHint}
            autocomplete="off"
            spellcheck={false}
            value={client_id}
            onValue={value => set({ client_id: value })}
          />
          {kind !== 'service' && (
            <Field
              name="redirect_uris"
              label={words.client.redirectUris}
              hint={words.newClient.redirectUrisHint}
              multiline={2}
              required
              spellcheck={false}
              value={redirects}
              onValue={value => set({ redirects: value })}
            />
          )}
          <OrganizationField hint={words.common.ownOrganization} id={owner} onValue={setOwner} />
        </Card>
        {kind !== 'service' && (
          <fieldset class="kinds">
            <legend>{words.newClient.whose}</legend>
            {owners.map(([value, title, text]) => (
              <label key={title} class="kind">
                <input
                  type="radio"
                  name="owner"
                  checked={isForeign === value}
                  onChange={() => set({ isForeign: value })}
                />
                <Icon name={value ? 'web' : 'organizations'} />
                <span>
                  <strong>{title}</strong>
                  <span class="hint">{text}</span>
                </span>
              </label>
            ))}
          </fieldset>
        )}
        <Refused problem={problem} />
        <div class="save-bar plain">
          <AsCurl text={curlOf('POST', '/clients', body)} />
          <a class="button" href="/console/clients">
            {words.common.cancel}
          </a>
          <button type="submit" class="primary" disabled={dialog.isBusy}>
            {words.newClient.action}
          </button>
        </div>
      </ApiForm>
    </>
  )
}
