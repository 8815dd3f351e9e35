import type { Settings } from '#src/directory/organizations/schema.ts'
import { LinesField } from '../collections.tsx'
import { Choice } from '../fields.tsx'
import { may, me } from '../me.ts'
import { Card } from '../parts.tsx'
import { words } from '../words.ts'

interface Props {
  /** Id of the organization. */
  id: string
  settings: Settings
  onChange(change: Partial<Settings>): void
}

const orNull = (lines: string[]): string[] | null => (lines.length > 0 ? lines : null)

/**
 * Edits how people may join the organization, and which email domains lead to its login page
 * (`login_domains`). Only administrators of the default organization may change `login_domains`, so nobody
 * else sees this field.
 */
export const Joining = ({ id, settings, onChange }: Props) => {
  const text = words.joining
  type Policy = NonNullable<Settings['registration']>
  const policies: Policy[] = ['off', 'open', 'domains', 'approval']
  const chosen = settings.registration ?? 'off'
  return (
    <Card
      title={text.title}
      lead={text.lead}
      {...(chosen === 'approval' && {
        aside: may('users:read') && (
          <a href={`/console/registrations?organization_id=${id}`}>{words.nav.registrations}</a>
        ),
      })}
    >
      <Choice
        label={text.registration}
        name="settings.registration"
        value={chosen}
        options={policies.map(policy => [policy, text.policies[policy]])}
        onValue={policy => onChange({ registration: policy === 'off' ? null : (policy as Policy) })}
      />
      <LinesField
        name="settings.allowed_domains"
        label={text.domains}
        hint={text.domainsHint}
        lines={settings.allowed_domains ?? []}
        onLines={lines => onChange({ allowed_domains: orNull(lines) })}
      />
      {me.value?.instance && (
        <LinesField
          name="settings.login_domains"
          label={text.loginDomains}
          hint={text.loginDomainsHint}
          lines={settings.login_domains ?? []}
          onLines={lines => onChange({ login_domains: orNull(lines) })}
        />
      )}
    </Card>
  )
}

/** Edits the policies for applications that no administrator registered. */
export const DynamicPolicies = ({ id, settings, onChange }: Props) => {
  const text = words.dynamic
  type Registration = NonNullable<Settings['client_registration']>
  type Documents = NonNullable<Settings['client_metadata_documents']>
  const registrations: Registration[] = ['off', 'initial_access_token', 'open']
  const documents: Documents[] = ['off', 'allowlist', 'any']
  const given = <T extends string>(value: string): T | null => (value === 'off' ? null : (value as T))
  return (
    <Card
      title={words.nav.dynamicClients}
      lead={text.policiesLead}
      aside={
        may('clients:read') && (
          <a href={`/console/dynamic-clients?organization_id=${id}`}>{words.nav.dynamicClients}</a>
        )
      }
    >
      <div class="pair">
        <Choice
          label={text.registration}
          name="settings.client_registration"
          value={settings.client_registration ?? 'off'}
          options={registrations.map(policy => [policy, text.registrations[policy]])}
          onValue={policy => onChange({ client_registration: given<Registration>(policy) })}
        />
        <Choice
          label={text.documents}
          name="settings.client_metadata_documents"
          value={settings.client_metadata_documents ?? 'off'}
          options={documents.map(policy => [policy, text.documentPolicies[policy]])}
          onValue={policy => onChange({ client_metadata_documents: given<Documents>(policy) })}
        />
      </div>
      {settings.client_metadata_documents === 'allowlist' && (
        <LinesField
          name="settings.allowed_metadata_documents"
          label={text.allowed}
          hint={text.allowedHint}
          rows={5}
          lines={settings.allowed_metadata_documents ?? []}
          onLines={lines => onChange({ allowed_metadata_documents: orNull(lines) })}
        />
      )}
      <LinesField
        name="settings.blocked_clients"
        label={text.blockedClients}
        hint={text.blockedHint}
        lines={settings.blocked_clients ?? []}
        onLines={lines => onChange({ blocked_clients: orNull(lines) })}
      />
    </Card>
  )
}
