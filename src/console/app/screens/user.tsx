import { useState } from 'preact/hooks'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { useAction } from '../action.ts'
import { AsCode } from '../as-code.tsx'
import { ConfirmCall } from '../confirm-call.tsx'
import { Deletion } from '../deletion.tsx'
import { Check, Field } from '../fields.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useObject } from '../hooks.ts'
import { may } from '../me.ts'
import { ForeignOrganization } from '../names.tsx'
import { Once } from '../once.tsx'
import { Badge, Card, Heading, Refused, Value, When } from '../parts.tsx'
import { nameOf } from '../person-field.tsx'
import { RoleChecks, useRoles } from '../role-checks.tsx'
import { sendsMail } from '../session.ts'
import { UnloadedScreen } from '../unloaded.tsx'
import { nameOrder, say, words } from '../words.ts'
import { Attributes, type Organization } from './attributes.tsx'
import { Applications, Groups, useGroups } from './user-access.tsx'
import { Factors, Log, Remembered, Sessions } from './user-security.tsx'

const Profile = (props: { user: UserAnswer; loaded: Loaded<UserAnswer>; groups: GroupsOfUser }) => {
  const { user, loaded, groups } = props
  const path = `/users/${user.id}`
  const edit = useEdit<UserAnswer>(path, user, loaded.etag, loaded, 'attributes')
  const { values, set } = edit
  const organization = useObject<Organization>(`/organizations/${user.organization_id}`)
  const offers = organization.data?.settings.email_code ?? 'off'
  const roles = useRoles(user.organization_id)
  /** A new address counts as unverified until the person says otherwise. */
  const setEmail = (email: string) => {
    const isStored = email.toLowerCase() === user.email.toLowerCase()
    set({ email, email_verified: isStored && user.email_verified })
  }
  const field = (name: 'username' | 'email' | 'first_name' | 'last_name', label: string) => (
    <Field
      name={name}
      label={label}
      autocomplete="off"
      value={values[name]}
      onValue={value => (name === 'email' ? setEmail(value) : set({ [name]: value }))}
    />
  )
  const through = (role: string): string => {
    const givers = groups.items.filter(group => group.roles.includes(role))
    return givers.length > 0
      ? say(words.access.through, { groups: givers.map(({ name }) => name).join(', ') })
      : ''
  }
  return (
    <EditForm edit={edit} path={path} stored={user}>
      <Card title={words.user.profile}>
        <div class="pair">
          {nameOrder(field('first_name', words.users.firstName), field('last_name', words.users.lastName))}
        </div>
        {field('username', words.users.username)}
        {field('email', words.users.email)}
        <Check
          label={words.users.verified}
          hint={words.users.verifiedHint}
          checked={values.email_verified}
          onChecked={email_verified => set({ email_verified })}
        />
        {offers !== 'off' && (
          <Check
            label={words.users.emailCode}
            checked={values.email_code}
            onChecked={email_code => set({ email_code })}
          />
        )}
      </Card>
      <Card title={words.user.roles} lead={words.user.rolesLead}>
        <RoleChecks roles={roles} chosen={values.roles} about={through} onChosen={roles => set({ roles })} />
      </Card>
      <Attributes
        key={edit.version}
        organization={organization}
        attributes={values.attributes}
        onAttributes={attributes => set({ attributes })}
      />
    </EditForm>
  )
}

type GroupsOfUser = ReturnType<typeof useGroups>

type Step = 'disable' | 'sign_out'

const Help = ({ user, loaded }: { user: UserAnswer; loaded: Loaded<UserAnswer> }) => {
  const [step, setStep] = useState<Step>()
  const [link, setLink] = useState<string>()
  const name = nameOf(user)
  const quick = useAction(loaded.reload)
  const linking = useAction<{ url: string }>(({ url }) => setLink(url))
  const steps: Record<Step, Omit<Parameters<typeof ConfirmCall>[0], 'onDone' | 'onClose'>> = {
    disable: {
      title: say(words.user.disableTitle, { name }),
      text: words.user.disableText,
      action: words.users.disable,
      method: 'PUT',
      path: `/users/${user.id}`,
      body: { enabled: false },
      done: words.users.isDisabled,
    },
    sign_out: {
      title: say(words.user.signOutTitle, { name }),
      text: words.user.signOutText,
      action: words.users.signOut,
      method: 'DELETE',
      path: `/users/${user.id}/sessions`,
      done: words.user.signedOut,
    },
  }
  return (
    <Card title={words.user.safety} lead={sendsMail ? undefined : words.user.noMail}>
      <Refused problem={quick.problem ?? linking.problem} />
      <div class="buttons">
        {may('users:update') && (
          <>
            <button
              type="button"
              disabled={!sendsMail}
              onClick={() =>
                void quick.run('POST', `/users/${user.id}/send-password-reset`, words.user.mailSent)
              }
            >
              {words.user.mailReset}
            </button>
            <button type="button" onClick={() => void linking.run('POST', `/users/${user.id}/sign-in-link`)}>
              {words.user.makeLink}
            </button>
            {user.picture && (
              <button
                type="button"
                onClick={() =>
                  void quick.run('DELETE', `/users/${user.id}/picture`, words.user.pictureRemoved)
                }
              >
                {words.user.removePicture}
              </button>
            )}
            {user.enabled ? (
              <button type="button" onClick={() => setStep('disable')}>
                {words.users.disable}
              </button>
            ) : (
              <button
                type="button"
                onClick={() =>
                  void quick.run('PUT', `/users/${user.id}`, words.users.isEnabled, { enabled: true })
                }
              >
                {words.users.enable}
              </button>
            )}
          </>
        )}
        {may('sessions:revoke') && (
          <button type="button" onClick={() => setStep('sign_out')}>
            {words.user.signOutAction}
          </button>
        )}
      </div>
      {step && (
        <ConfirmCall
          {...steps[step]}
          onDone={() => {
            setStep(undefined)
            loaded.reload()
          }}
          onClose={() => setStep(undefined)}
        />
      )}
      {link && (
        <Once
          title={words.user.link}
          text={say(words.user.linkText, { name })}
          value={link}
          onClose={() => setLink(undefined)}
        />
      )}
    </Card>
  )
}

/** Screen of one user. */
export const UserScreen = ({ id }: { id: string }) => {
  const loaded = useObject<UserAnswer>(`/users/${encodeURIComponent(id)}`)
  const groups = useGroups(id)
  const back = { href: '/console/users', label: words.nav.users }
  const user = loaded.data
  if (!user) return <UnloadedScreen title={words.user.one} back={back} loaded={loaded} />
  return (
    <>
      <Heading
        title={nameOf(user)}
        back={back}
        badge={
          user.enabled ? (
            <Badge tone="good">{words.users.isEnabled}</Badge>
          ) : (
            <Badge tone="bad">{words.users.isDisabled}</Badge>
          )
        }
        lead={
          <>
            <Value text={user.id} />{' '}
            {user.last_login ? (
              <>
                {words.user.lastLoginAt} <When time={user.last_login} />
              </>
            ) : (
              words.user.neverLoggedIn
            )}
            <ForeignOrganization id={user.organization_id} />
          </>
        }
      />
      <Refused problem={loaded.problem} />
      <div class="columns">
        <div class="stack">
          <Profile user={user} loaded={loaded} groups={groups} />
          {(may('users:update') || may('sessions:revoke')) && <Help user={user} loaded={loaded} />}
        </div>
        <div class="stack">
          <Factors id={user.id} />
          <Remembered id={user.id} />
          {may('groups:read') && <Groups groups={groups} />}
          {may('sessions:read') && (
            <>
              <Applications id={user.id} />
              <Sessions id={user.id} />
            </>
          )}
          {may('events:read') && <Log id={user.id} />}
          <AsCode section="users" path={`/users/${user.id}`} object={user} />
        </div>
      </div>
      <Deletion
        name={nameOf(user)}
        typed={user.username}
        text={words.user.deleteText}
        path={`/users/${user.id}`}
        list="/console/users"
      />
    </>
  )
}
