import type { OrganizationAnswer } from '#src/directory/organizations/schema.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { AsCode } from '../as-code.tsx'
import { Deletion } from '../deletion.tsx'
import { Field } from '../fields.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useObject } from '../hooks.ts'
import { may, mayListOrganizations } from '../me.ts'
import { Card, Heading, Value } from '../parts.tsx'
import { Sections } from '../sections.tsx'
import { UnloadedScreen } from '../unloaded.tsx'
import { words } from '../words.ts'
import { Definitions } from './attributes.tsx'
import { LoginSettings } from './login-settings.tsx'
import { DynamicPolicies, Joining } from './organization-access.tsx'
import { TermsSettings } from './terms.tsx'

type Organization = (typeof OrganizationAnswer)['_output']
type Settings = Organization['settings']

const Names = (props: { values: Organization; onChange(change: Partial<Organization>): void }) => {
  const { values, onChange } = props
  return (
    <Card title={words.organization.names}>
      <Field
        name="display_name"
        label={words.organization.shown}
        value={values.display_name}
        onValue={display_name => onChange({ display_name })}
      />
      <div class="pair">
        <Field
          name="name"
          label={words.organization.internal}
          value={values.name}
          onValue={name => onChange({ name })}
        />
        <Field
          name="slug"
          label={words.organization.slug}
          spellcheck={false}
          value={values.slug}
          onValue={slug => onChange({ slug })}
        />
      </div>
    </Card>
  )
}

const Form = ({ organization, loaded }: { organization: Organization; loaded: Loaded<Organization> }) => {
  const path = `/organizations/${organization.id}`
  const edit = useEdit<Organization>(path, organization, loaded.etag, loaded)
  const { values, set } = edit
  const { settings } = values
  const choose = (change: Partial<Settings>) => set({ settings: { ...settings, ...change } })
  return (
    <EditForm edit={edit} path={path} stored={organization}>
      <Sections
        label={words.common.settings}
        sections={[
          {
            id: 'names',
            label: words.organization.names,
            content: <Names values={values} onChange={set} />,
          },
          {
            id: 'sign-in',
            label: words.organization.logins,
            content: <LoginSettings key={edit.version} settings={settings} onChange={choose} />,
          },
          {
            id: 'joining',
            label: words.joining.title,
            content: (
              <Joining key={edit.version} id={organization.id} settings={settings} onChange={choose} />
            ),
          },
          {
            id: 'terms',
            label: words.organization.accepted,
            content: <TermsSettings settings={settings} onChange={choose} />,
          },
          {
            id: 'dynamic',
            label: words.nav.dynamicClients,
            content: (
              <DynamicPolicies
                key={edit.version}
                id={organization.id}
                settings={settings}
                onChange={choose}
              />
            ),
          },
          {
            id: 'attributes',
            label: words.attributes.definitions,
            content: (
              <Definitions
                key={edit.version}
                definitions={settings.user_attributes ?? []}
                onDefinitions={user_attributes => choose({ user_attributes })}
              />
            ),
          },
        ]}
      />
    </EditForm>
  )
}

/** Screen of one organization. */
export const OrganizationScreen = ({ id }: { id: string }) => {
  const loaded = useObject<Organization>(`/organizations/${encodeURIComponent(id)}`)
  const back = mayListOrganizations()
    ? { href: '/console/organizations', label: words.nav.organizations }
    : { href: '/console', label: words.nav.overview }
  const organization = loaded.data
  if (!organization) return <UnloadedScreen title={words.log.organization} back={back} loaded={loaded} />
  const { display_name, name, slug } = organization
  return (
    <>
      <Heading
        title={display_name}
        back={back}
        lead={
          <>
            {name !== display_name && `${name} · `}
            <Value text={organization.id} />
          </>
        }
      >
        <a class="button" href={`/console/looks/${organization.id}`}>
          {words.looks.title}
        </a>
        {may('users:read') && (
          <a class="button" href={`/console/users?organization_id=${organization.id}`}>
            {words.nav.users}
          </a>
        )}
        {may('clients:read') && (
          <a class="button" href={`/console/clients?organization_id=${organization.id}`}>
            {words.nav.clients}
          </a>
        )}
        {may('events:read') && (
          <a class="button" href={`/console/events?organization_id=${organization.id}`}>
            {words.common.events}
          </a>
        )}
      </Heading>
      <div class="narrow stack">
        <Form organization={organization} loaded={loaded} />
        <AsCode section="organizations" path={`/organizations/${organization.id}`} object={organization} />
        {/* Only the administrators of the default organization can manage the whole instance. */}
        {organization.id !== DEFAULT_ORGANIZATION && (
          <Deletion
            name={display_name}
            typed={slug}
            text={words.organization.deleteText}
            path={`/organizations/${organization.id}`}
            list="/console/organizations"
          />
        )}
      </div>
    </>
  )
}
