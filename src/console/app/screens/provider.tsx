import { useState } from 'preact/hooks'
import { AsCode } from '../as-code.tsx'
import { Deletion } from '../deletion.tsx'
import { Check, Field } from '../fields.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useObject } from '../hooks.ts'
import { may } from '../me.ts'
import { ForeignOrganization } from '../names.tsx'
import { NewDialog } from '../new-dialog.tsx'
import { Badge, Card, EventsLink, Heading, Refused, Value } from '../parts.tsx'
import { show } from '../toast.tsx'
import { UnloadedScreen } from '../unloaded.tsx'
import { fullDate, say, words } from '../words.ts'
import { Connection } from './connection.tsx'
import { type Provider, returnAddress, typeNames } from './provider-facts.ts'

/**
 * Replaces the secret that the provider has issued to Gatehouse. The stored secret is never shown, so that
 * somebody who steals an administrator's session cannot read it.
 */
const NewSecret = ({ provider, loaded }: { provider: Provider; loaded: Loaded<Provider> }) => {
  const [client_secret, setSecret] = useState<string>()
  const close = () => setSecret(undefined)
  return (
    <>
      <button type="button" onClick={() => setSecret('')}>
        {words.providers.newSecret}
      </button>
      {client_secret !== undefined && (
        <NewDialog
          title={words.providers.newSecret}
          method="PUT"
          path={`/identity-providers/${provider.id}`}
          body={{ client_secret }}
          action={words.common.save}
          onMade={() => {
            close()
            show(words.common.saved)
            loaded.reload()
          }}
          onClose={close}
        >
          <Field
            name="client_secret"
            label={words.providers.clientSecret}
            // A private key in PEM has several lines, which an input of one line would join.
            {...(provider.key_id && { multiline: 6 })}
            required
            autocomplete="off"
            spellcheck={false}
            value={client_secret}
            onValue={setSecret}
          />
        </NewDialog>
      )}
    </>
  )
}

/**
 * Shows Gatehouse's callback URL, the provider's issuer or entity id, and the provider's certificates. An
 * expired certificate is only marked, because the server still accepts its key.
 */
const Facts = ({ provider }: { provider: Provider }) => (
  <Card>
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
              {say(words.providers.until, { date: fullDate(expires_at) })}
            </Badge>
          </dd>
        </div>
      ))}
    </dl>
  </Card>
)

const Form = ({ provider, loaded }: { provider: Provider; loaded: Loaded<Provider> }) => {
  const path = `/identity-providers/${provider.id}`
  const edit = useEdit<Provider>(path, provider, loaded.etag, loaded)
  const { values, set } = edit
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
        <Field name="name" label={words.common.name} value={values.name} onValue={name => set({ name })} />
        {values.client_id !== undefined && (
          <Field
            name="client_id"
            label={words.providers.clientId}
            spellcheck={false}
            value={values.client_id}
            onValue={client_id => set({ client_id })}
          />
        )}
      </Card>
    </EditForm>
  )
}

/** Screen of one identity provider. */
export const ProviderScreen = ({ id }: { id: string }) => {
  const loaded = useObject<Provider>(`/identity-providers/${encodeURIComponent(id)}`)
  const back = { href: '/console/identity-providers', label: words.nav.providers }
  const mayChange = may('identity_providers:update')
  const provider = loaded.data
  if (!provider) return <UnloadedScreen title={words.providers.one} back={back} loaded={loaded} />
  return (
    <>
      <Heading
        title={provider.name}
        back={back}
        badge={
          <Badge tone={provider.enabled ? 'good' : 'plain'}>
            {provider.enabled ? words.providers.on : words.providers.off}
          </Badge>
        }
        lead={
          <>
            {typeNames[provider.type]}
            <ForeignOrganization id={provider.organization_id} />
          </>
        }
      >
        <EventsLink of={provider.id} />
        {provider.type !== 'saml' && mayChange && <NewSecret provider={provider} loaded={loaded} />}
      </Heading>
      <div class="narrow stack">
        <Refused problem={loaded.problem} />
        <Form provider={provider} loaded={loaded} />
        <Facts provider={provider} />
        {mayChange && <Connection key={provider.id} id={provider.id} isSaml={provider.type === 'saml'} />}
        <AsCode section="identity_providers" path={`/identity-providers/${provider.id}`} object={provider} />
        <Deletion
          name={provider.name}
          typed={provider.alias}
          text={words.providers.deleteText}
          path={`/identity-providers/${provider.id}`}
          list="/console/identity-providers"
        />
      </div>
    </>
  )
}
