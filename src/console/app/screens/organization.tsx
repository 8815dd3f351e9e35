import { useState } from 'preact/hooks'
import type { OrganizationAnswer } from '#src/directory/organizations/schema.ts'
import { useAction } from '../action.ts'
import { AsCode } from '../as-code.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useObject } from '../hooks.ts'
import { Card, Check, Choice, Confirm, Failure, Field, Heading, Loading, Value } from '../parts.tsx'
import { announce, go } from '../router.ts'
import { words } from '../words.ts'
import { Definitions } from './attributes.tsx'

type Organization = (typeof OrganizationAnswer)['_output']
type Settings = Organization['settings']

const DEFAULT = 'org_default'

const Form = ({ organization, loaded }: { organization: Organization; loaded: Loaded<Organization> }) => {
  const path = `/organizations/${organization.id}`
  const edit = useEdit<Organization>(path, organization, loaded.etag, loaded)
  const { values, set, problem } = edit
  const { settings } = values
  const choose = (change: Partial<Settings>) => set({ settings: { ...settings, ...change } })
  type Text = 'session_ttl' | 'accent_color' | 'terms_url' | 'privacy_url' | 'support_url'
  const text = (name: Text, label: string, hint: string) => (
    <Field
      name={`settings.${name}`}
      label={label}
      hint={hint}
      autocomplete="off"
      spellcheck={false}
      value={settings[name] ?? ''}
      problem={problem}
      onValue={value => choose({ [name]: value === '' ? null : value })}
    />
  )
  return (
    <EditForm edit={edit} path={path} stored={organization}>
      <Card title="Names">
        <Field
          name="display_name"
          label="Name that people see"
          value={values.display_name}
          problem={problem}
          onValue={display_name => set({ display_name })}
        />
        <div class="pair">
          <Field
            name="name"
            label="Name for administrators"
            value={values.name}
            problem={problem}
            onValue={name => set({ name })}
          />
          <Field
            name="slug"
            label="Slug"
            spellcheck={false}
            value={values.slug}
            problem={problem}
            onValue={slug => set({ slug })}
          />
        </div>
      </Card>
      <Card title="Logins">
        <Check
          label="Everyone needs a second factor"
          hint="People who have none add one at the next login."
          checked={settings.mfa_required ?? false}
          onChecked={mfa_required => choose({ mfa_required })}
        />
        <Check
          label="Confirm before destructive changes, in every application"
          hint="The console always asks for a login of the last five minutes."
          checked={settings.step_up === 'all'}
          onChecked={isOn => choose({ step_up: isOn ? 'all' : null })}
        />
        <Check
          label="People may delete their account"
          checked={settings.self_deletion ?? false}
          onChecked={self_deletion => choose({ self_deletion })}
        />
        <div class="pair">
          {text('session_ttl', 'Longest login', 'Such as 12h or 30d; empty for the default.')}
          <Choice
            label="Passwords"
            value={settings.password_policy?.preset ?? ''}
            options={[
              ['', 'Default rules'],
              ['nist', 'Long, no composition rules (NIST)'],
            ]}
            onValue={preset => choose({ password_policy: preset === 'nist' ? { preset } : null })}
          />
        </div>
      </Card>
      <Card title="Pages" lead="How the login pages look, and what they link to.">
        {text('accent_color', 'Accent colour', 'Six hexadecimal digits, such as #2b50d8.')}
        {text('terms_url', 'Terms of use', 'An https address.')}
        {text('privacy_url', 'Privacy policy', 'An https address.')}
        {text('support_url', 'Help', 'An https or mailto address.')}
      </Card>
      <Definitions
        key={edit.version}
        definitions={settings.user_attributes ?? []}
        problem={problem}
        onDefinitions={user_attributes => choose({ user_attributes })}
      />
    </EditForm>
  )
}

export const OrganizationScreen = ({ id }: { id: string }) => {
  const loaded = useObject<Organization>(`/organizations/${encodeURIComponent(id)}`)
  const [isAsked, setAsked] = useState(false)
  const removal = useAction(() => {
    go('/console/organizations')
    announce()
  })
  const back = { href: '/console/organizations', label: words.nav.organizations }
  const organization = loaded.data
  if (!organization)
    return (
      <>
        <Heading title="Organization" back={back} />
        <Card>
          {loaded.problem ? <Failure problem={loaded.problem} retry={loaded.reload} /> : <Loading />}
        </Card>
      </>
    )
  const { display_name, slug } = organization
  return (
    <>
      <Heading title={display_name} back={back} lead={<Value text={organization.id} />}>
        <a class="button" href={`/console/events?organization_id=${organization.id}`}>
          Events
        </a>
        {organization.id !== DEFAULT && (
          <button type="button" class="danger" onClick={() => setAsked(true)}>
            Delete
          </button>
        )}
      </Heading>
      <div class="narrow stack">
        <Form organization={organization} loaded={loaded} />
        <AsCode section="organizations" path={`/organizations/${organization.id}`} object={organization} />
      </div>
      {isAsked && (
        <Confirm
          title={`Delete ${display_name}?`}
          text="All of its users, applications, roles and events go with it. This cannot be undone."
          action="Delete"
          typed={slug}
          {...removal.dialog}
          onConfirm={() =>
            void removal.run('DELETE', `/organizations/${organization.id}`, `${display_name} was deleted`)
          }
          onClose={() => setAsked(false)}
        />
      )}
    </>
  )
}
