/** The screen of one user. Over 300 lines on purpose: its cards share the user and the actions. */
import { useState } from 'preact/hooks'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { useAction } from '../action.ts'
import { asProblem, callApi, type Problem } from '../api.ts'
import { AsCode } from '../as-code.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, type PageOf, useObject } from '../hooks.ts'
import { Once } from '../once.tsx'
import {
  Badge,
  Card,
  Check,
  Confirm,
  Empty,
  Failure,
  Field,
  Heading,
  Loading,
  Refused,
  Value,
  When,
} from '../parts.tsx'
import { nameOf } from '../person-field.tsx'
import { announce, go } from '../router.ts'
import { show } from '../toast.tsx'
import { UnloadedScreen } from '../unloaded.tsx'
import { programOf, say, words } from '../words.ts'
import { Attributes } from './attributes.tsx'
import { EventRow, type LogEvent } from './event-row.tsx'
import { Applications, Groups, useGroups } from './user-access.tsx'

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
    return givers.length > 0
      ? say(words.access.through, { groups: givers.map(({ name }) => name).join(', ') })
      : ''
  }
  return (
    <EditForm edit={edit} path={path} stored={user}>
      <Card title={words.user.profile}>
        <div class="pair">
          {field('first_name', words.users.firstName)}
          {field('last_name', words.users.lastName)}
        </div>
        {field('username', words.users.username)}
        {field('email', words.users.email)}
        <Check
          label={words.users.verified}
          checked={values.email_verified}
          onChecked={email_verified => set({ email_verified })}
        />
      </Card>
      <Card title={words.user.roles} lead={words.user.rolesLead}>
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
      show(words.sessions.ended)
      list.reload()
    } catch (error) {
      setProblem(asProblem(error))
    }
  }
  return (
    <Card title={words.user.sessions} flush>
      <Refused problem={problem} />
      {list.problem ? (
        <Failure problem={list.problem} retry={list.reload} />
      ) : !list.data ? (
        <Loading />
      ) : list.data.data.length === 0 ? (
        <Empty title={words.user.noSessions} icon="sessions" />
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
                {words.sessions.end}
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
  const isLockedOut = action.problem?.status === 409
  return (
    <Card title={words.user.factors} flush>
      {list.problem ? (
        <Failure problem={list.problem} retry={list.reload} />
      ) : !list.data ? (
        <Loading rows={2} />
      ) : list.data.data.length === 0 ? (
        <Empty title={words.user.noFactors} icon="lock">
          {words.user.noFactorsText}
        </Empty>
      ) : (
        <ul class="rows">
          {list.data.data.map(factor => (
            <li key={factor.id} class="row">
              <span>
                <strong>{factor.name}</strong>
                <span class="hint">{factor.type === 'totp' ? words.user.totp : words.user.passkey}</span>
              </span>
              <When time={factor.last_used_at} />
              <button type="button" onClick={() => setAsked(factor)}>
                {words.user.removeFactor}
              </button>
            </li>
          ))}
        </ul>
      )}
      {asked && (
        <Confirm
          title={words.user.removeFactorTitle}
          text={isLockedOut ? words.user.lockedOut : words.user.removeFactorText}
          action={isLockedOut ? words.user.removeAnyway : words.user.removeFactor}
          isBusy={action.dialog.isBusy}
          problem={isLockedOut ? undefined : action.problem}
          onConfirm={() =>
            void action.run(
              'DELETE',
              `/users/${id}/factors/${asked.id}${isLockedOut ? '?only_way_in=true' : ''}`,
              words.user.factorRemoved,
            )
          }
          onClose={() => setAsked(undefined)}
        />
      )}
    </Card>
  )
}

interface RememberedBrowser {
  id: string
  ip_address: string
  user_agent: string
  expires_at: string
}

/** Browsers that spare the user the second factor; absent without any. */
const Remembered = ({ id }: { id: string }) => {
  const path = `/users/${id}/remembered-browsers`
  const list = useObject<PageOf<RememberedBrowser>>(path)
  const action = useAction(() => list.reload())
  if (!list.data || list.data.data.length === 0) return null
  return (
    <Card title={words.user.remembered} flush>
      <Refused problem={action.problem} />
      <ul class="rows">
        {list.data.data.map(browser => (
          <li key={browser.id} class="row">
            <span>
              <strong>{browser.ip_address}</strong>
              <span class="hint">{browser.user_agent}</span>
            </span>
            <When time={browser.expires_at} />
            <button
              type="button"
              disabled={action.dialog.isBusy}
              onClick={() => void action.run('DELETE', `${path}/${browser.id}`, words.user.forgotten)}
            >
              {words.user.forget}
            </button>
          </li>
        ))}
      </ul>
    </Card>
  )
}

const Log = ({ id }: { id: string }) => {
  const list = useObject<PageOf<LogEvent>>(`/events?target_id=${id}&limit=8`)
  return (
    <Card
      title={words.common.events}
      flush
      aside={<a href={`/console/events?target_id=${id}`}>{words.common.all}</a>}
    >
      {list.problem ? (
        <Failure problem={list.problem} retry={list.reload} />
      ) : !list.data ? (
        <Loading />
      ) : list.data.data.length === 0 ? (
        <Empty title={words.user.noEvents} icon="events" />
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

type GroupsOfUser = ReturnType<typeof useGroups>

type Step = 'disable' | 'delete' | 'sign_out'

const Help = ({ user, loaded }: { user: UserAnswer; loaded: Loaded<UserAnswer> }) => {
  const [step, setStep] = useState<Step>()
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
      title: say(words.user.disableTitle, { name }),
      text: words.user.disableText,
      action: words.users.disable,
      run: () => void action.run('PUT', `/users/${user.id}`, words.users.isDisabled, { enabled: false }),
    },
    sign_out: {
      title: say(words.user.signOutTitle, { name }),
      text: words.user.signOutText,
      action: words.users.signOut,
      run: () => void action.run('DELETE', `/users/${user.id}/sessions`, words.user.signedOut),
    },
    delete: {
      title: say(words.common.deleteOne, { name }),
      text: words.user.deleteText,
      action: words.common.delete,
      run: () => void action.run('DELETE', `/users/${user.id}`, say(words.common.deleted, { name })),
    },
  }
  return (
    <Card title={words.user.safety}>
      <Refused problem={quick.problem ?? problem} />
      <div class="buttons">
        <button
          type="button"
          onClick={() => void quick.run('POST', `/users/${user.id}/send-password-reset`, words.user.mailSent)}
        >
          {words.user.mailReset}
        </button>
        <button type="button" onClick={() => void makeLink()}>
          {words.user.makeLink}
        </button>
        {user.picture && (
          <button
            type="button"
            onClick={() => void quick.run('DELETE', `/users/${user.id}/picture`, words.user.pictureRemoved)}
          >
            {words.user.removePicture}
          </button>
        )}
        <button type="button" onClick={() => setStep('sign_out')}>
          {words.user.signOutAction}
        </button>
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
        <button type="button" class="danger" onClick={() => setStep('delete')}>
          {words.common.delete}
        </button>
      </div>
      {step && (
        <Confirm
          {...steps[step]}
          {...(step === 'delete' && { typed: user.username })}
          {...action.dialog}
          onConfirm={steps[step].run}
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
  const loaded = useObject<UserAnswer>(`/users/${id}`)
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
            <Value text={user.id} /> {words.user.lastLogin} <When time={user.last_login} />
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
          <Remembered id={user.id} />
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
