import { useState } from 'preact/hooks'
import type { InvitationDetail } from '#src/directory/invitations/schema.ts'
import { useAction } from '../action.ts'
import { CodeCard } from '../as-code.tsx'
import { ConfirmCall } from '../confirm-call.tsx'
import { curlOf } from '../curl.ts'
import { type Fact, Facts } from '../facts.tsx'
import { type Loaded, useObject } from '../hooks.ts'
import { EmptyCard } from '../list.tsx'
import { may } from '../me.ts'
import { NamedLink } from '../names.tsx'
import { AsCurl, Card, EventsLink, Heading, Refused, Value, When } from '../parts.tsx'
import { UnloadedScreen } from '../unloaded.tsx'
import { fullDate, number, say, words } from '../words.ts'
import { inviteeOf, LinkOnce, type Sent, StatusBadge, tellSent } from './invitations.tsx'

type Detail = (typeof InvitationDetail)['_output']

const text = words.invitations

/** Shows the buttons that send the invitation again and withdraw it, if the caller may do either. */
const Actions = ({ invitation, loaded }: { invitation: Detail; loaded: Loaded<Detail> }) => {
  const path = `/invitations/${invitation.id}`
  const [isAsked, setAsked] = useState(false)
  const [sent, setSent] = useState<Sent>()
  const resending = useAction<Sent>(answer => {
    if (answer.invitation_url) setSent(answer)
    else tellSent(answer)
    loaded.reload()
  })
  if (!may('users:create') && !may('users:delete')) return null
  return (
    <Card title={text.actions} lead={text.actionsLead}>
      <Refused problem={resending.problem} />
      <div class="buttons">
        {may('users:create') && (
          <button type="button" onClick={() => void resending.run('POST', `${path}/resend`)}>
            {invitation.delivery === 'mail' ? text.resend : text.remake}
          </button>
        )}
        {may('users:delete') && (
          <button type="button" class="danger" onClick={() => setAsked(true)}>
            {text.withdraw}
          </button>
        )}
      </div>
      {isAsked && (
        <ConfirmCall
          title={text.withdrawTitle}
          text={text.withdrawText}
          action={text.withdraw}
          method="DELETE"
          path={path}
          done={text.withdrawn}
          onDone={() => {
            setAsked(false)
            loaded.reload()
          }}
          onClose={() => setAsked(false)}
        />
      )}
      {sent && <LinkOnce sent={sent} onClose={() => setSent(undefined)} />}
    </Card>
  )
}

const InvitationFacts = ({ invitation }: { invitation: Detail }) => {
  const { delivery, user_id, email, roles, groups, uses, max_uses, created_by, created_at, expires_at } =
    invitation
  const facts: Fact[] = [
    [text.delivery, text.deliveries[delivery]],
    [words.users.email, email ?? '–'],
    ...(user_id ? [[words.user.one, <NamedLink key="user" type="user" id={user_id} />] as Fact] : []),
    [words.nav.roles, roles.join(', ') || '–'],
    [
      words.nav.groups,
      groups.length > 0 ? groups.map(id => <NamedLink key={id} type="group" id={id} />) : '–',
    ],
    [text.used, say(words.common.of, { shown: number(uses), total: number(max_uses) })],
    [
      text.createdBy,
      created_by ? (
        <NamedLink key="by" type={created_by.startsWith('usr_') ? 'user' : 'client'} id={created_by} />
      ) : (
        text.server
      ),
    ],
    [words.users.created, fullDate(created_at)],
    [text.ends, fullDate(expires_at)],
    [words.log.organization, <NamedLink key="of" type="organization" id={invitation.organization_id} />],
  ]
  return (
    <Card title={text.one}>
      <Facts facts={facts} />
    </Card>
  )
}

/** Screen of one invitation. */
export const InvitationScreen = ({ id }: { id: string }) => {
  const path = `/invitations/${encodeURIComponent(id)}`
  const loaded = useObject<Detail>(path)
  const back = { href: '/console/invitations', label: words.nav.invitations }
  const invitation = loaded.data
  if (!invitation) return <UnloadedScreen title={text.one} back={back} loaded={loaded} />
  const isOpen = invitation.status === 'pending' || invitation.status === 'expired'
  return (
    <>
      <Heading
        title={inviteeOf(invitation)}
        back={back}
        badge={<StatusBadge of={invitation} />}
        lead={<Value text={invitation.id} />}
      >
        <EventsLink of={invitation.id} />
      </Heading>
      <Refused problem={loaded.problem} />
      <div class="columns">
        <div class="stack">
          <InvitationFacts invitation={invitation} />
          {isOpen && <Actions invitation={invitation} loaded={loaded} />}
        </div>
        <div class="stack">
          {invitation.accepted_by.length === 0 ? (
            <EmptyCard title={text.acceptedBy} text={text.nobody} />
          ) : (
            <Card title={text.acceptedBy} flush>
              <ul class="rows">
                {invitation.accepted_by.map(({ user_id, accepted_at }) => (
                  <li key={user_id} class="row">
                    <span>
                      <NamedLink type="user" id={user_id} />
                    </span>
                    <When time={accepted_at} />
                  </li>
                ))}
              </ul>
            </Card>
          )}
          <CodeCard>
            <AsCurl text={curlOf('GET', path)} />
          </CodeCard>
        </div>
      </div>
    </>
  )
}
