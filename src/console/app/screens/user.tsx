import { useState } from 'preact/hooks'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { useAction } from '../action.ts'
import { asProblem, callApi, type Problem, read } from '../api.ts'
import { AsCode } from '../as-code.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, type PageOf, useObject } from '../hooks.ts'
import {
  Badge,
  Card,
  Check,
  Confirm,
  Copy,
  Dialog,
  Empty,
  Failure,
  Field,
  Heading,
  Loading,
  Refused,
  Value,
  When,
} from '../parts.tsx'
import { announce, go } from '../router.ts'
import { show } from '../toast.tsx'
import { programOf, words } from '../words.ts'
import { Attributes } from './attributes.tsx'
import { EventRow, type LogEvent } from './event-row.tsx'
import { Applications, Groups, useGroups } from './user-access.tsx'

const nameOf = ({ first_name, last_name, username }: UserAnswer): string =>
  `${first_name} ${last_name}`.trim() || username

const Profile = (props: { user: UserAnswer; loaded: Loaded<UserAnswer>; groups: GroupsOfUser }) => {
  const { user, loaded, groups } = props
  const path = `/users/${user.id}`
  const edit = useEdit<UserAnswer>(path, user, loaded.etag, loaded)
  const { values, set, problem } = edit
  const roles = useObject<PageOf<{ name: string; description: string }>>(
    `/roles?limit=100&organization_id=${user.organization_id}`,
  ).data
  const field = (name: 'username' | 'email' | 'first_name' | 'last_name', label: string) => (
    <Field
      name={name}
      label={label}
      autocomplete="off"
      value={values[name]}
      problem={problem}
      onValue={value => set({ [name]: value })}
    />
  )
  const names = [...new Set([...(roles?.data.map(({ name }) => name) ?? []), ...user.roles])]
  const through = (role: string): string => {
    const givers = groups.data?.data.filter(group => group.roles.includes(role)) ?? []
    return givers.length > 0 ? words.access.through(givers.map(({ name }) => name).join(', ')) : ''
  }
  return (
    <EditForm edit={edit} path={path} stored={user}>
      <Card title="Profile">
        <div class="pair">
          {field('first_name', 'First name')}
          {field('last_name', 'Last name')}
        </div>
        <div class="pair">
          {field('username', 'User name')}
          {field('email', 'E-mail')}
        </div>
        <Check
          label="The address is verified"
          checked={values.email_verified}
          onChecked={email_verified => set({ email_verified })}
        />
      </Card>
      <Card title="Roles" lead="What this person may do. Groups may give more.">
        <div class="checks">
          {names.map(name => (
            <Check
              key={name}
              label={name}
              hint={[roles?.data.find(role => role.name === name)?.description, through(name)]
                .filter(Boolean)
                .join(' · ')}
              checked={values.roles.includes(name)}
              onChecked={isOn =>
                set({ roles: names.filter(each => (each === name ? isOn : values.roles.includes(each))) })
              }
            />
          ))}
        </div>
      </Card>
      <Attributes
        key={edit.version}
        organization_id={user.organization_id}
        attributes={values.attributes}
        problem={problem}
        onAttributes={attributes => set({ attributes })}
      />
    </EditForm>
  )
}

interface Session {
  id: string
  client_id: string
  ip_address: string
  user_agent: string
  location?: string
  started_at?: string
  last_active_at?: string
}

const Sessions = ({ id }: { id: string }) => {
  const list = useObject<PageOf<Session>>(`/sessions?user_id=${id}&limit=20`)
  const [problem, setProblem] = useState<Problem>()
  const end = async (session: Session): Promise<void> => {
    try {
      await callApi('DELETE', `/sessions/${session.id}`)
      show('The session has ended')
      list.reload()
    } catch (error) {
      setProblem(asProblem(error))
    }
  }
  return (
    <Card title="Sessions" flush>
      <Refused problem={problem} />
      {list.problem ? (
        <Failure problem={list.problem} retry={list.reload} />
      ) : !list.data ? (
        <Loading />
      ) : list.data.data.length === 0 ? (
        <Empty title="No sessions" />
      ) : (
        <ul class="rows">
          {list.data.data.map(session => (
            <li key={session.id} class="row">
              <span>
                <strong>{session.client_id}</strong>
                <span class="hint">
                  {[session.location, session.ip_address, programOf(session.user_agent)]
                    .filter(Boolean)
                    .join(' · ')}
                </span>
              </span>
              {session.last_active_at && <When time={session.last_active_at} />}
              <button type="button" onClick={() => void end(session)}>
                End
              </button>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

interface Factor {
  id: string
  type: 'totp' | 'passkey'
  name: string
  last_used_at: string | null
}

const Factors = ({ id }: { id: string }) => {
  const list = useObject<PageOf<Factor>>(`/users/${id}/factors`)
  const [asked, setAsked] = useState<Factor>()
  const action = useAction(() => {
    setAsked(undefined)
    list.reload()
  })
  return (
    <Card title="Second factors" flush>
      {list.problem ? (
        <Failure problem={list.problem} retry={list.reload} />
      ) : !list.data ? (
        <Loading rows={2} />
      ) : list.data.data.length === 0 ? (
        <Empty title="No second factor" icon="lock">
          People add one in their account.
        </Empty>
      ) : (
        <ul class="rows">
          {list.data.data.map(factor => (
            <li key={factor.id} class="row">
              <span>
                <strong>{factor.name}</strong>
                <span class="hint">{factor.type === 'totp' ? 'Authenticator app' : 'Passkey'}</span>
              </span>
              <When time={factor.last_used_at} />
              <button type="button" onClick={() => setAsked(factor)}>
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      {asked && (
        <Confirm
          title="Remove this factor?"
          text="All sessions and logins of this person end."
          action="Remove"
          {...action.dialog}
          onConfirm={() =>
            void action.run('DELETE', `/users/${id}/factors/${asked.id}`, 'The factor was removed')
          }
          onClose={() => setAsked(undefined)}
        />
      )}
    </Card>
  )
}

const Log = ({ id }: { id: string }) => {
  const list = useObject<PageOf<LogEvent>>(`/events?target_id=${id}&limit=8`)
  return (
    <Card title="Events" flush aside={<a href={`/console/events?target_id=${id}`}>All</a>}>
      {list.problem ? (
        <Failure problem={list.problem} retry={list.reload} />
      ) : !list.data ? (
        <Loading />
      ) : list.data.data.length === 0 ? (
        <Empty title="No events" />
      ) : (
        <ul class="rows">
          {list.data.data.map(event => (
            <EventRow key={event.id} event={event} />
          ))}
        </ul>
      )}
    </Card>
  )
}

/** True when no other enabled user has the role `admin`. */
const isLastAdmin = async (user: UserAnswer): Promise<boolean> => {
  if (!user.roles.includes('admin')) return false
  const { organization_id } = user
  const path = `/users?role=admin&enabled=true&limit=1&organization_id=${organization_id}`
  return (await read<PageOf<UserAnswer>>(path)).pagination.total < 2
}

type GroupsOfUser = ReturnType<typeof useGroups>

type Step = 'disable' | 'delete' | 'sign_out'

const Help = ({ user, loaded }: { user: UserAnswer; loaded: Loaded<UserAnswer> }) => {
  const [step, setStep] = useState<Step>()
  const [isLast, setLast] = useState(false)
  const [link, setLink] = useState<string>()
  const [problem, setProblem] = useState<Problem>()
  const name = nameOf(user)
  const action = useAction(() => {
    setStep(undefined)
    if (step === 'delete') {
      go('/console/users')
      announce()
    } else loaded.reload()
  })
  const quick = useAction(() => loaded.reload())
  const ask = async (wanted: Step): Promise<void> => {
    setLast(wanted !== 'sign_out' && (await isLastAdmin(user).catch(() => true)))
    setStep(wanted)
  }
  const makeLink = async (): Promise<void> => {
    try {
      setProblem(undefined)
      const { data } = await callApi<{ url: string }>('POST', `/users/${user.id}/sign-in-link`)
      setLink(data.url)
    } catch (error) {
      setProblem(asProblem(error))
    }
  }
  const steps: Record<Step, { title: string; text: string; action: string; run(): void }> = {
    disable: {
      title: `Disable ${name}?`,
      text: 'This person cannot log in until you enable them again. Sessions stay.',
      action: 'Disable',
      run: () => void action.run('PUT', `/users/${user.id}`, 'Disabled', { enabled: false }),
    },
    sign_out: {
      title: `Sign ${name} out everywhere?`,
      text: 'All sessions and logins end, in every application and browser.',
      action: 'Sign out',
      run: () => void action.run('DELETE', `/users/${user.id}/sessions`, 'Signed out everywhere'),
    },
    delete: {
      title: `Delete ${name}?`,
      text: 'The user goes with sessions, tokens and the events that name them. This cannot be undone.',
      action: 'Delete',
      run: () => void action.run('DELETE', `/users/${user.id}`, `${name} was deleted`),
    },
  }
  return (
    <Card title="Help and safety">
      <Refused problem={quick.problem ?? problem} />
      <div class="buttons">
        <button
          type="button"
          onClick={() =>
            void quick.run('POST', `/users/${user.id}/send-password-reset`, 'The mail is on its way')
          }
        >
          Mail a password reset
        </button>
        <button type="button" onClick={() => void makeLink()}>
          Make a sign-in link
        </button>
        <button type="button" onClick={() => void ask('sign_out')}>
          Sign out everywhere
        </button>
        {user.enabled ? (
          <button type="button" onClick={() => void ask('disable')}>
            Disable
          </button>
        ) : (
          <button
            type="button"
            onClick={() => void quick.run('PUT', `/users/${user.id}`, 'Enabled', { enabled: true })}
          >
            Enable
          </button>
        )}
        <button type="button" class="danger" onClick={() => void ask('delete')}>
          Delete
        </button>
      </div>
      {step && (
        <Confirm
          {...steps[step]}
          text={isLast ? `${steps[step].text} This is the last administrator.` : steps[step].text}
          {...(isLast || step === 'delete' ? { typed: user.username } : {})}
          {...action.dialog}
          onConfirm={steps[step].run}
          onClose={() => setStep(undefined)}
        />
      )}
      {link && (
        <Dialog title="Sign-in link" onClose={() => setLink(undefined)}>
          <p>It works once, and is shown only here. Whoever opens it is logged in as {name}.</p>
          <p class="value">
            <code>{link}</code>
          </p>
          <div class="dialog-actions">
            <button type="button" onClick={() => setLink(undefined)}>
              {words.common.close}
            </button>
            <Copy text={link} label={words.common.copy} />
          </div>
        </Dialog>
      )}
    </Card>
  )
}

export const UserScreen = ({ id }: { id: string }) => {
  const loaded = useObject<UserAnswer>(`/users/${id}`)
  const groups = useGroups(id)
  const back = { href: '/console/users', label: words.nav.users }
  const user = loaded.data
  if (!user)
    return (
      <>
        <Heading title="User" back={back} />
        <Card>
          {loaded.problem ? <Failure problem={loaded.problem} retry={loaded.reload} /> : <Loading />}
        </Card>
      </>
    )
  return (
    <>
      <Heading
        title={nameOf(user)}
        back={back}
        badge={user.enabled ? <Badge tone="good">Enabled</Badge> : <Badge tone="bad">Disabled</Badge>}
        lead={
          <>
            <Value text={user.id} /> Last login <When time={user.last_login} />
          </>
        }
      />
      <div class="columns">
        <div class="stack">
          <Profile user={user} loaded={loaded} groups={groups} />
          <Help user={user} loaded={loaded} />
        </div>
        <div class="stack">
          <Factors id={user.id} />
          <Groups groups={groups} />
          <Applications id={user.id} />
          <Sessions id={user.id} />
          <Log id={user.id} />
          <AsCode section="users" path={`/users/${user.id}`} object={user} />
        </div>
      </div>
    </>
  )
}
