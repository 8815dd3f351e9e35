import { useState } from 'preact/hooks'
import type { ClientAnswer } from '#src/directory/clients/schema.ts'
import { AsCode } from '../as-code.tsx'
import { LinesField } from '../collections.tsx'
import { Deletion } from '../deletion.tsx'
import { DurationField } from '../duration-field.tsx'
import { Check, Choice, Field } from '../fields.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useObject } from '../hooks.ts'
import { ForeignOrganization } from '../names.tsx'
import { Badge, Card, EventsLink, Heading, Value } from '../parts.tsx'
import { RotateButton } from '../rotation.tsx'
import { Sections } from '../sections.tsx'
import { UnloadedScreen } from '../unloaded.tsx'
import { words } from '../words.ts'
import { Admission, Claims } from './admission.tsx'
import { kindNames } from './clients.tsx'
import { Presentation } from './presentation.tsx'
import { Snippets } from './snippets.tsx'
import { TestLogin } from './test-login.tsx'

type Client = (typeof ClientAnswer)['_output']

const kindOptions = [['', words.client.noKind], ...Object.entries(kindNames)] as [string, string][]

const Settings = ({ client, loaded }: { client: Client; loaded: Loaded<Client> }) => {
  const path = `/clients/${encodeURIComponent(client.client_id)}`
  const edit = useEdit<Client>(path, client, loaded.etag, loaded)
  const { values, set } = edit
  type Texts = 'redirect_uris' | 'post_logout_redirect_uris' | 'web_origins' | 'scopes'
  const texts = (name: Texts, label: string, hint: string, rows = 3) => (
    <LinesField
      key={`${name} ${edit.version}`}
      name={name}
      label={label}
      hint={hint}
      rows={rows}
      lines={values[name]}
      onLines={lines => set({ [name]: lines })}
    />
  )
  const lifetime = (name: 'access_token_ttl' | 'refresh_token_ttl', label: string) => (
    <DurationField
      key={edit.version}
      name={name}
      label={label}
      value={values[name]}
      onValue={value => set({ [name]: value })}
    />
  )
  const signsIn = values.grant_types.includes('authorization_code')
  const general = (
    <Card title={words.common.settings}>
      <Field name="name" label={words.common.name} value={values.name} onValue={name => set({ name })} />
      <Field
        name="description"
        label={words.common.description}
        hint={words.client.descriptionHint}
        multiline={2}
        value={values.description}
        onValue={description => set({ description })}
      />
      <Choice
        label={words.client.kind}
        value={values.kind ?? ''}
        options={kindOptions}
        onValue={kind => set({ kind: (kind || null) as Client['kind'] })}
      />
    </Card>
  )
  const addresses = (
    <Card title={words.client.addresses} lead={words.client.addressesLead}>
      {texts('redirect_uris', words.client.redirectUris, words.client.redirectUrisHint)}
      {texts('post_logout_redirect_uris', words.client.afterLogout, words.client.afterLogoutHint)}
      {texts('web_origins', words.client.origins, words.client.originsHint)}
    </Card>
  )
  const tokens = (
    <>
      <Card title={words.client.tokens}>
        {texts('scopes', words.client.scopes, words.client.scopesHint, 0)}
        <div class="pair">
          {lifetime('access_token_ttl', words.client.accessTtl)}
          {lifetime('refresh_token_ttl', words.client.refreshTtl)}
        </div>
        {signsIn && (
          <Check
            label={words.client.consent}
            hint={words.client.consentHint}
            checked={values.consent_required}
            onChecked={consent_required => set({ consent_required })}
          />
        )}
        {values.grant_types.includes('refresh_token') && (
          <Check
            label={words.client.idTokenOnRefresh}
            hint={words.client.idTokenOnRefreshHint}
            checked={values.id_token_on_refresh}
            onChecked={id_token_on_refresh => set({ id_token_on_refresh })}
          />
        )}
      </Card>
      <Claims
        key={edit.version}
        organization_id={values.organization_id}
        claims={values.claims}
        onClaims={claims => set({ claims })}
      />
    </>
  )
  return (
    <EditForm edit={edit} path={path} stored={client}>
      <Sections
        label={words.common.settings}
        sections={[
          { id: 'settings', label: words.common.settings, content: general },
          signsIn && { id: 'addresses', label: words.client.addresses, content: addresses },
          { id: 'tokens', label: words.client.tokens, content: tokens },
          signsIn && {
            id: 'admission',
            label: words.admission.title,
            content: <Admission key={edit.version} client={values} onChange={set} />,
          },
          signsIn && {
            id: 'presentation',
            label: words.client.presentation,
            content: <Presentation key={edit.version} client={values} onChange={set} />,
          },
        ]}
      />
    </EditForm>
  )
}

/** Screen of one application. */
export const ClientScreen = ({ id }: { id: string }) => {
  const path = `/clients/${encodeURIComponent(id)}`
  const loaded = useObject<Client>(path)
  const [secret, setSecret] = useState<string>()
  const back = { href: '/console/clients', label: words.nav.clients }
  const client = loaded.data
  if (!client) return <UnloadedScreen title={words.client.one} back={back} loaded={loaded} />
  return (
    <>
      <Heading
        title={client.name}
        back={back}
        badge={<Badge>{client.kind ? kindNames[client.kind] : client.type}</Badge>}
        lead={
          <>
            <Value text={client.client_id} />
            <ForeignOrganization id={client.organization_id} />
          </>
        }
      >
        <EventsLink of={client.client_id} />
        {client.type === 'confidential' && (
          <RotateButton<{ client_secret: string }>
            text={words.client.rotateText}
            path={`${path}/secret`}
            shown={{
              title: words.client.newSecret,
              text: client.kind
                ? `${words.client.secretOnce} ${words.client.secretPlace}`
                : words.client.secretOnce,
            }}
            secretOf={({ client_secret }) => client_secret}
            onSecret={setSecret}
          />
        )}
      </Heading>
      <div class="columns">
        <Settings client={client} loaded={loaded} />
        <div class="stack">
          <Snippets client={client} secret={secret} />
          {client.grant_types.includes('authorization_code') && <TestLogin client={client} />}
          <AsCode section="clients" path={path} object={client} />
        </div>
      </div>
      <Deletion
        name={client.name}
        typed={client.client_id}
        text={words.client.deleteText}
        path={path}
        list="/console/clients"
      />
    </>
  )
}
