import { useState } from 'preact/hooks'
import { Choice, Field } from '../fields.tsx'
import { useFilters } from '../filters.ts'
import { useList } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { ListCard } from '../list.tsx'
import { useOrganizations } from '../names.tsx'
import { NewDialog } from '../new-dialog.tsx'
import { OrganizationField } from '../organization-field.tsx'
import { AddButton, Badge, Empty, Heading } from '../parts.tsx'
import { go } from '../router.ts'
import { joined, words } from '../words.ts'
import { type Provider, returnAddress, typeNames } from './provider-facts.ts'

type Kind = 'google' | 'microsoft' | 'github' | 'gitlab' | 'discord' | 'oidc' | 'saml'

const kinds: [Kind, label: string, type: Provider['type']][] = [
  ['google', 'Google', 'oidc'],
  ['microsoft', 'Microsoft', 'oidc'],
  ['gitlab', 'GitLab', 'oauth2'],
  ['github', 'GitHub', 'oauth2'],
  ['discord', 'Discord', 'oauth2'],
  ['oidc', words.providers.otherProvider, 'oidc'],
  ['saml', 'SAML 2.0', 'saml'],
]

interface Draft {
  kind: Kind
  name: string
  alias: string
  client_id: string
  client_secret: string
  issuer: string
  metadata_url: string
  metadata_xml: string
}

const empty: Draft = {
  kind: 'google',
  name: 'Google',
  alias: 'google',
  client_id: '',
  client_secret: '',
  issuer: '',
  metadata_url: '',
  metadata_xml: '',
}

const typeOf = (kind: Kind): Provider['type'] => kinds.find(([name]) => name === kind)?.[2] ?? 'oidc'

/**
 * Returns the request body. The provider is created disabled, so that an administrator can check it before
 * users see it.
 */
const bodyOf = ({ kind, name, alias, ...given }: Draft) => {
  const { client_id, client_secret, issuer, metadata_url, metadata_xml } = given
  const common = { type: typeOf(kind), name, alias, enabled: false }
  if (kind === 'saml') return { ...common, ...(metadata_xml ? { metadata_xml } : { metadata_url }) }
  const known = kind === 'oidc' ? { issuer } : { preset: kind }
  return { ...common, ...known, client_id, client_secret }
}

/** Screen of the list of identity providers. */
export const ProvidersScreen = () => {
  const { entered, filters, change } = useFilters(['organization_id'])
  const list = useList<Provider>('/identity-providers', { ...filters, limit: 50 })
  const organizationOf = useOrganizations(list.items)
  const [draft, setDraft] = useState<Draft>()
  const set = (change: Partial<Draft>) => draft && setDraft({ ...draft, ...change })
  const field = (name: Exclude<keyof Draft, 'kind'>, label: string, hint = '', isRequired = true) => (
    <Field
      name={name}
      label={label}
      hint={hint}
      required={isRequired}
      autocomplete="off"
      spellcheck={false}
      value={draft?.[name] ?? ''}
      onValue={value => set({ [name]: value })}
    />
  )
  return (
    <>
      <Heading title={words.nav.providers} lead={words.providers.lead}>
        <AddButton
          label={words.providers.add}
          permission="identity_providers:create"
          onAdd={() => setDraft(empty)}
        />
      </Heading>
      <div class="filters">
        <OrganizationField
          id={entered.organization_id}
          onValue={organization_id => change({ organization_id })}
        />
      </div>
      <ListCard
        list={list}
        empty={
          <Empty title={words.providers.none} icon="providers">
            {words.providers.noneText}
          </Empty>
        }
        row={provider => (
          <li key={provider.id}>
            <a class="row link" href={`/console/identity-providers/${provider.alias}`}>
              <span>
                <strong>{provider.name}</strong>
                <span class="hint">
                  {joined([organizationOf(provider.organization_id), typeNames[provider.type]])}
                </span>
              </span>
              <Badge tone={provider.enabled ? 'good' : 'plain'}>
                {provider.enabled ? words.providers.on : words.providers.off}
              </Badge>
              <Icon name="right" />
            </a>
          </li>
        )}
      />
      {draft && (
        <NewDialog<Provider>
          title={words.providers.add}
          owner={filters.organization_id}
          path="/identity-providers"
          body={bodyOf(draft)}
          onMade={({ alias }) => {
            go(`/console/identity-providers/${alias}`)
          }}
          onClose={() => setDraft(undefined)}
        >
          <Choice
            label={words.providers.provider}
            value={draft.kind}
            options={kinds.map(([kind, label]) => [kind, label] as const)}
            onValue={value => {
              const [kind, label] = kinds.find(([name]) => name === value) ?? ['oidc', '']
              const isKnown = kind !== 'oidc' && kind !== 'saml'
              set({ kind: kind as Kind, name: isKnown ? label : '', alias: isKnown ? kind : '' })
            }}
          />
          {field('name', words.common.name, words.providers.nameHint)}
          {field('alias', words.providers.alias, words.providers.aliasHint)}
          {draft.kind === 'saml' ? (
            <>
              {field('metadata_url', words.providers.metadata, '', draft.metadata_xml === '')}
              <Field
                name="metadata_xml"
                label={words.connection.paste}
                multiline={3}
                spellcheck={false}
                value={draft.metadata_xml}
                onValue={metadata_xml => set({ metadata_xml })}
              />
            </>
          ) : (
            <>
              {draft.kind === 'oidc' && field('issuer', words.providers.issuer)}
              {field('client_id', words.providers.clientId)}
              {field('client_secret', words.providers.clientSecret)}
            </>
          )}
          <p class="hint">
            {words.providers.register}{' '}
            <code>{returnAddress({ type: typeOf(draft.kind), alias: draft.alias || 'ALIAS' })}</code>
          </p>
        </NewDialog>
      )}
    </>
  )
}
