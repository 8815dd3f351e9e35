import { useState } from 'preact/hooks'
import type { registrationAnswer } from '#src/directory/registrations/schema.ts'
import { useAction } from '../action.ts'
import { ConfirmCall } from '../confirm-call.tsx'
import { Tabs } from '../families.tsx'
import { useFilters } from '../filters.ts'
import { useList } from '../hooks.ts'
import { ListCard } from '../list.tsx'
import { may } from '../me.ts'
import { useOrganizations } from '../names.tsx'
import { OrganizationField } from '../organization-field.tsx'
import { Avatar, Empty, Heading, Refused, When } from '../parts.tsx'
import { nameOf } from '../person-field.tsx'
import { person } from '../session.ts'
import { joined, say, words } from '../words.ts'

type Registration = ReturnType<typeof registrationAnswer>

const text = words.registrations

/** Lists people who registered and wait for approval. */
export const RegistrationsScreen = () => {
  const { entered, filters, change } = useFilters(['organization_id'])
  const list = useList<Registration>('/registrations', { ...filters, limit: 50, order: 'asc' })
  const organization_id = filters.organization_id || (person.value?.organization_id ?? '')
  const organizationOf = useOrganizations(list.items)
  const [asked, setAsked] = useState<Registration>()
  const approval = useAction(list.reload)
  return (
    <>
      <Heading title={words.nav.registrations} lead={text.lead}>
        {may('organizations:read') && (
          <a class="button" href={`/console/organizations/${encodeURIComponent(organization_id)}#joining`}>
            {text.setting}
          </a>
        )}
      </Heading>
      <Tabs />
      <div class="filters">
        <OrganizationField
          id={entered.organization_id}
          onValue={organization_id => change({ organization_id })}
        />
      </div>
      <Refused problem={approval.problem} />
      <ListCard
        list={list}
        empty={
          <Empty title={text.none} icon="users">
            {text.noneText}
          </Empty>
        }
        row={registration => (
          <li key={registration.id} class="row">
            <Avatar name={nameOf(registration)} id={registration.id} />
            <span>
              <a href={`/console/users/${registration.id}`}>
                <strong>{nameOf(registration)}</strong>
              </a>
              <span class="hint">
                {joined([
                  organizationOf(registration.organization_id),
                  registration.username,
                  registration.email,
                  !registration.email_verified && words.users.unverified,
                ])}
              </span>
            </span>
            <When time={registration.created_at} />
            <div class="buttons">
              {may('users:delete') && (
                <button
                  type="button"
                  aria-label={say(text.refuseOne, { name: nameOf(registration) })}
                  onClick={() => setAsked(registration)}
                >
                  {text.refuse}
                </button>
              )}
              {may('users:update') && (
                <button
                  type="button"
                  class="primary"
                  disabled={approval.dialog.isBusy}
                  aria-label={say(text.approveOne, { name: nameOf(registration) })}
                  onClick={() =>
                    void approval.run(
                      'POST',
                      `/registrations/${registration.id}/approve`,
                      say(text.approved, { name: nameOf(registration) }),
                    )
                  }
                >
                  {text.approve}
                </button>
              )}
            </div>
          </li>
        )}
      />
      {asked && (
        <ConfirmCall
          title={say(text.refuseTitle, { name: nameOf(asked) })}
          text={text.refuseText}
          action={text.refuse}
          method="DELETE"
          path={`/users/${asked.id}`}
          done={say(text.refused, { name: nameOf(asked) })}
          onDone={() => {
            setAsked(undefined)
            list.reload()
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  )
}
