import { useState } from 'preact/hooks'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { useAction } from '../action.ts'
import { ApiForm } from '../api-form.tsx'
import { curlOf } from '../curl.ts'
import { Check, Field } from '../fields.tsx'
import { may } from '../me.ts'
import { OrganizationField } from '../organization-field.tsx'
import { AsCurl, Card, Heading, Refused } from '../parts.tsx'
import { go, opened, query, startVisit, useUnsaved } from '../router.ts'
import { show } from '../toast.tsx'
import { nameOrder, say, words } from '../words.ts'
import { Grants, join, type Membership, type NotJoined, useGrants } from './grants.tsx'

const letters = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'

/**
 * Generates a password with a capital letter, a small letter, a digit and a symbol, because an
 * organization may require each of them. Letters and digits that look alike are left out, because a person
 * may have to type the password.
 */
const newPassword = (): string =>
  `${[...crypto.getRandomValues(new Uint32Array(16))].map(n => letters[n % letters.length]).join('')}-Aa7`

/** Shows that the user was created, and lists the chosen groups that the user could not join. */
const Incomplete = (props: { user: UserAnswer; failed: NotJoined[]; retry(): void; isBusy: boolean }) => {
  const { user, failed, retry, isBusy } = props
  return (
    <>
      <Heading
        title={say(words.common.added, { name: user.username })}
        back={{ href: '/console/users', label: words.nav.users }}
      />
      <div class="narrow stack">
        <Card title={words.newUser.notJoined} lead={words.newUser.notJoinedLead}>
          {failed.map(({ group, problem }) => (
            <div key={group.id}>
              <p>
                <strong>{group.name}</strong>
              </p>
              <Refused problem={problem} />
            </div>
          ))}
          <div class="buttons">
            <button type="button" disabled={isBusy} onClick={retry}>
              {words.common.retry}
            </button>
            <a class="button primary" href={`/console/users/${user.id}`}>
              {words.newUser.open}
            </a>
          </div>
        </Card>
      </div>
    </>
  )
}

/** Screen that creates a user. */
export const NewUserScreen = () => {
  const [first] = useState(() => ({
    username: '',
    email: '',
    first_name: '',
    last_name: '',
    password: newPassword(),
    email_verified: false,
  }))
  const [values, setValues] = useState(first)
  const owner = query.value.get('organization_id') ?? ''
  const [organization_id, setOwner] = useState(owner)
  const grants = useGrants(organization_id)
  const [groups, setGroups] = useState<Membership[]>([])
  const [roles, setRoles] = useState(['user'])
  const [made, setMade] = useState<{ user: UserAnswer; failed: NotJoined[] }>()
  const [isJoining, setJoining] = useState(false)
  const isChanged = JSON.stringify(values) !== JSON.stringify(first)
  useUnsaved(!made && (isChanged || groups.length > 0 || roles.join() !== 'user'))
  const set = (change: Partial<typeof values>) => setValues({ ...values, ...change })
  /** Adds the user to the groups, also after the person has left `screen`; a notice then tells the result. */
  const addTo = async (user: UserAnswer, wanted: Membership[], screen = opened.value) => {
    setJoining(true)
    const failed = await join(user.id, wanted)
    setJoining(false)
    const isHere = opened.value === screen
    if (isHere && failed.length > 0) {
      setMade({ user, failed })
      return startVisit()
    }
    const added = say(words.common.added, { name: user.username })
    show(failed.length > 0 ? `${added} · ${words.newUser.notJoined}` : added)
    if (isHere) go(may('users:read') ? `/console/users/${user.id}` : '/console')
  }
  const { run, problem, dialog } = useAction<UserAnswer>()
  if (made)
    return (
      <Incomplete
        {...made}
        isBusy={isJoining}
        retry={() =>
          void addTo(
            made.user,
            made.failed.map(({ group }) => group),
          )
        }
      />
    )
  const body = {
    ...values,
    ...(organization_id !== '' && { organization_id }),
    ...(grants.seesRoles && { roles }),
  }
  const add = async () => {
    const screen = opened.value
    const user = await run('POST', '/users', undefined, body)
    if (user) await addTo(user, groups, screen)
  }
  const field = (
    name: 'username' | 'email' | 'first_name' | 'last_name',
    label: string,
    type: 'text' | 'email' = 'text',
  ) => (
    <Field
      name={name}
      label={label}
      type={type}
      autocomplete="off"
      hint={name === 'username' && words.users.usernameHint}
      value={values[name]}
      onValue={value => set({ [name]: value })}
    />
  )
  return (
    <>
      <Heading title={words.users.add} back={{ href: '/console/users', label: words.nav.users }} />
      <ApiForm path="/users" problem={problem} class="form narrow" onSubmit={() => void add()}>
        <Card>
          <OrganizationField
            hint={words.common.ownOrganization}
            id={owner}
            onValue={id => {
              setOwner(id)
              // A group belongs to one organization, so the chosen groups do not exist in another
              // organization.
              setGroups([])
            }}
          />
          {field('username', words.users.username)}
          {field('email', words.users.email, 'email')}
          <div class="pair">
            {nameOrder(field('first_name', words.users.firstName), field('last_name', words.users.lastName))}
          </div>
          <Field
            name="password"
            label={words.newUser.password}
            hint={words.newUser.passwordHint}
            autocomplete="off"
            spellcheck={false}
            copied
            value={values.password}
            onValue={password => set({ password })}
          />
          <Check
            label={words.users.verified}
            hint={words.users.verifiedHint}
            checked={values.email_verified}
            onChecked={email_verified => set({ email_verified })}
          />
        </Card>
        <Grants grants={grants} roles={roles} onRoles={setRoles} groups={groups} onGroups={setGroups} />
        <Refused problem={problem} />
        <div class="save-bar plain">
          <AsCurl
            text={[
              curlOf('POST', '/users', body),
              ...groups.map(({ id }) => curlOf('PUT', `/groups/${id}/members/$USER_ID`)),
            ].join('\n')}
          />
          <a class="button" href="/console/users">
            {words.common.cancel}
          </a>
          <button type="submit" class="primary" disabled={dialog.isBusy || isJoining}>
            {words.newUser.action}
          </button>
        </div>
      </ApiForm>
    </>
  )
}
