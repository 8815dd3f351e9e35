import { useState } from 'preact/hooks'
import type { invitationAnswer, SentInvitation } from '#src/directory/invitations/schema.ts'
import { Picker } from '../collections.tsx'
import { Tabs } from '../families.tsx'
import { Choice, Field } from '../fields.tsx'
import { useFilters } from '../filters.ts'
import { useList } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { ListCard } from '../list.tsx'
import { useOrganizations } from '../names.tsx'
import { NewDialog } from '../new-dialog.tsx'
import { Once } from '../once.tsx'
import { withMore } from '../options.ts'
import { OrganizationField } from '../organization-field.tsx'
import { AddButton, Badge, Empty, Heading } from '../parts.tsx'
import { sendsMail } from '../session.ts'
import { show } from '../toast.tsx'
import { fullDate, joined, number, say, withUnit, words } from '../words.ts'
import { isGrantable, useGrants } from './grants.tsx'

export type Invitation = ReturnType<typeof invitationAnswer>
export type Sent = (typeof SentInvitation)['_output']

const text = words.invitations

const tones = { pending: 'good', accepted: 'plain', expired: 'warn', withdrawn: 'plain' } as const

/** Shows the status of an invitation. */
export const StatusBadge = ({ of: { status } }: { of: Pick<Invitation, 'status'> }) => (
  <Badge tone={tones[status]}>{text.statuses[status]}</Badge>
)

/** Returns the recipient of an invitation as text. */
export const inviteeOf = ({ email, max_uses }: Pick<Invitation, 'email' | 'max_uses'>): string =>
  email ?? (max_uses > 1 ? say(text.several, { count: max_uses }) : text.anyone)

/** Shows the link of an invitation. */
export const LinkOnce = ({ sent, onClose }: { sent: Sent; onClose(): void }) => (
  <Once
    title={text.link}
    text={sent.email ? say(text.linkFor, { email: sent.email }) : text.linkText}
    value={sent.invitation_url ?? ''}
    onClose={onClose}
  />
)

/** Shows that an invitation was mailed. */
export const tellSent = ({ email }: Sent): void => show(say(text.mailed, { email: email ?? '' }))

const DAY = 86_400
const lifetimes = [1, 3, 7, 14, 30]

interface Draft {
  delivery: Sent['delivery']
  email: string
  roles: string[]
  groups: string[]
  max_uses: string
  days: number
  organization_id: string
}

const fresh: Draft = {
  delivery: sendsMail ? 'mail' : 'link',
  email: '',
  roles: ['user'],
  groups: [],
  max_uses: '1',
  days: 7,
  organization_id: '',
}

const isForSeveral = ({ delivery, max_uses }: Draft): boolean => delivery === 'link' && max_uses !== '1'

/**
 * Returns the request body. The API refuses an address, roles and groups for an invitation for several
 * people, so they are left out.
 */
const bodyOf = (draft: Draft) => {
  const { delivery, email, roles, groups, max_uses, days, organization_id } = draft
  return {
    delivery,
    expires_in: days * DAY,
    ...(organization_id !== '' && { organization_id }),
    ...(isForSeveral(draft)
      ? { max_uses: Number(max_uses) }
      : { ...(email !== '' && { email }), roles, groups }),
  }
}

/** Edits the roles and groups that the invited person gets, among those that the caller may grant. */
const Grants = (props: { draft: Draft; onChange(change: Partial<Draft>): void }) => {
  const { draft, onChange } = props
  const { roles, list, groups } = useGrants(draft.organization_id)
  const grantable = roles.list.items.filter(isGrantable)
  return (
    <>
      <Picker
        name="roles"
        label={words.nav.roles}
        chosen={draft.roles}
        options={withMore(
          roles.list,
          grantable.map(({ name }) => [name, name]),
        )}
        onChosen={roles => onChange({ roles })}
      />
      <Picker
        name="groups"
        label={words.nav.groups}
        chosen={draft.groups}
        options={withMore(
          list,
          groups.map(({ id, name }) => [id, name]),
        )}
        onChosen={groups => onChange({ groups })}
      />
    </>
  )
}

const Invite = (props: { owner: string; onSent(sent: Sent): void; onClose(): void }) => {
  const [draft, setDraft] = useState({ ...fresh, organization_id: props.owner })
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change })
  return (
    <NewDialog<Sent>
      title={text.add}
      path="/invitations"
      action={draft.delivery === 'mail' ? text.send : text.make}
      body={bodyOf(draft)}
      onMade={props.onSent}
      onClose={props.onClose}
    >
      <Choice
        label={text.delivery}
        name="delivery"
        hint={!sendsMail && words.mail.off}
        value={draft.delivery}
        options={[
          ['mail', text.deliveries.mail, !sendsMail],
          ['link', text.deliveries.link],
        ]}
        onValue={delivery => set({ delivery: delivery as Draft['delivery'] })}
      />
      {draft.delivery === 'link' && (
        <Field
          name="max_uses"
          label={text.uses}
          hint={text.usesHint}
          value={draft.max_uses}
          onValue={max_uses => set({ max_uses })}
        />
      )}
      {!isForSeveral(draft) && (
        <Field
          name="email"
          label={words.users.email}
          hint={draft.delivery === 'link' ? text.emailHint : ''}
          type="email"
          autocomplete="off"
          required={draft.delivery === 'mail'}
          value={draft.email}
          onValue={email => set({ email })}
        />
      )}
      <OrganizationField
        hint={words.common.ownOrganization}
        id={props.owner}
        onValue={organization_id => setDraft(draft => ({ ...draft, organization_id }))}
      />
      {!isForSeveral(draft) && <Grants draft={draft} onChange={set} />}
      <Choice
        label={words.common.validFor}
        name="expires_in"
        value={String(draft.days)}
        options={lifetimes.map(days => [String(days), withUnit(days, 'day')])}
        onValue={days => set({ days: Number(days) })}
      />
    </NewDialog>
  )
}

/** Screen of the list of invitations. */
export const InvitationsScreen = () => {
  const { entered, filters, change } = useFilters(['organization_id'])
  const list = useList<Invitation>('/invitations', { ...filters, limit: 50 })
  const organizationOf = useOrganizations(list.items)
  const [isNew, setNew] = useState(false)
  const [sent, setSent] = useState<Sent>()
  return (
    <>
      <Heading title={words.nav.invitations} lead={text.lead}>
        <AddButton label={text.add} permission="users:create" onAdd={() => setNew(true)} />
      </Heading>
      <Tabs />
      <div class="filters">
        <OrganizationField
          id={entered.organization_id}
          onValue={organization_id => change({ organization_id })}
        />
      </div>
      <ListCard
        list={list}
        empty={
          <Empty title={text.none} icon="mail">
            {text.noneText}
          </Empty>
        }
        row={invitation => (
          <li key={invitation.id}>
            <a class="row link" href={`/console/invitations/${invitation.id}`}>
              <span>
                <strong>{inviteeOf(invitation)}</strong>
                <span class="hint">
                  {joined([
                    organizationOf(invitation.organization_id),
                    ...invitation.roles,
                    say(text.until, { time: fullDate(invitation.expires_at) }),
                  ])}
                </span>
              </span>
              {invitation.max_uses > 1 && (
                <span class="wide muted">
                  {say(words.common.of, {
                    shown: number(invitation.uses),
                    total: number(invitation.max_uses),
                  })}
                </span>
              )}
              <StatusBadge of={invitation} />
              <Icon name="right" />
            </a>
          </li>
        )}
      />
      {isNew && (
        <Invite
          owner={filters.organization_id}
          onSent={made => {
            setNew(false)
            list.reload()
            if (made.invitation_url) setSent(made)
            else tellSent(made)
          }}
          onClose={() => setNew(false)}
        />
      )}
      {sent && <LinkOnce sent={sent} onClose={() => setSent(undefined)} />}
    </>
  )
}
