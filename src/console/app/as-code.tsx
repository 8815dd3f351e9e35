import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { asProblem, type Problem, read } from './api.ts'
import { curlOf } from './curl.ts'
import { seedFields } from './limits.ts' with { type: 'macro' }
import { may } from './me.ts'
import { AsCurl, Code, Failure, Loading } from './parts.tsx'
import { words } from './words.ts'
import { yamlOf } from './yaml.ts'

type Values = Record<string, unknown>
type Section =
  | 'organizations'
  | 'roles'
  | 'users'
  | 'groups'
  | 'clients'
  | 'apis'
  | 'identity_providers'
  | 'webhooks'

const fieldsOf = seedFields()
const text = words.code

/** Fields whose content is a picture or CSS, of an object or of its settings. */
const assets = ['logo', 'logo_dark', 'custom_css']

/**
 * True for an object that cannot be shown as YAML. The API answers with the URLs of pictures and CSS and with
 * the fingerprints of a SAML provider's certificates, but not with their contents.
 */
const isPartial = (object: Values): boolean =>
  object.type === 'saml' ||
  [object, (object.settings ?? {}) as Values].some(fields => assets.some(name => fields[name]))

/**
 * Returns the secret field of an object as a reference to an environment variable. Returns an empty object
 * when there is no secret.
 */
const secretOf = (section: Section, { type, client_id, alias }: Values): Values => {
  const owner = section === 'clients' ? type === 'confidential' && client_id : type !== 'saml' && alias
  if (!owner || (section !== 'clients' && section !== 'identity_providers')) return {}
  return {
    client_secret: {
      env: `${String(owner)
        .toUpperCase()
        .replace(/[^A-Z0-9]+/g, '_')}_SECRET`,
    },
  }
}

/** True for a role that the seed file need not contain, because each organization has it. */
const isBuiltIn = (role: unknown): boolean => role === 'admin' || role === 'user'

/**
 * Returns the names of the other objects to which an entry refers, by section of the seed file. Omits the
 * built-in roles.
 */
const namedBy = (entry: Values): [section: string, names: unknown[]][] => {
  const list = (name: string, field?: string): unknown[] =>
    ((entry[name] ?? []) as Values[]).map(item => (field ? item[field] : item))
  const roles = [
    ...list('roles'),
    ...list('allowed_roles'),
    ...list('default_roles'),
    ...list('scopes', 'role'),
  ]
  return [
    ['organizations', [entry.organization]],
    ['roles', roles.filter(role => !isBuiltIn(role))],
    ['groups', list('allowed_groups')],
    ['clients', [...list('clients', 'client_id'), ...list('served_by')]],
  ]
}

/**
 * Returns a YAML comment that lists the objects to which the entry refers. Returns '' for an entry without
 * references.
 */
const needsOf = (entry: Values): string => {
  const all = namedBy(entry).flatMap(([section, names]) => {
    const own = new Set(names.filter(Boolean))
    return own.size > 0 ? `${section} ${[...own].join(', ')}` : []
  })
  return all.length > 0 ? `# The instance or this file must have: ${all.join('; ')}\n` : ''
}

/** Returns an object as part of a seed file, without the fields that have their default value. */
const seedOf = (section: Section, object: Values, more: Values): string => {
  const fields =
    fieldsOf[section === 'identity_providers' ? `${section}.${String(object.type)}` : section] ?? {}
  const all: Values = { ...object, ...more, ...secretOf(section, object) }
  const entry = Object.entries(fields).flatMap(([name, usual]) => {
    const value = all[name]
    const isUsual = value === undefined || JSON.stringify(value) === usual
    return isUsual ? [] : [[name, value]]
  })
  const shown = Object.fromEntries(entry)
  return needsOf(shown) + yamlOf(section, [shown])
}

interface Organization {
  slug: string
  settings: { user_attributes?: { visible?: string }[] | null }
}

/**
 * Returns values for the entry in the file. Each replaces the object's value of the same name, or is added.
 * `organization` is the slug of the organization. It is undefined for the default organization. A user's
 * picture is always undefined. The attributes are undefined if some of them are hidden, or if the default
 * organization cannot be read. An undefined field is left out of the file, and applying the file keeps its
 * stored value.
 */
const readMore = async (section: Section, { organization_id }: Values): Promise<Values> => {
  const isDefault = organization_id === DEFAULT_ORGANIZATION
  if (section === 'organizations' || (isDefault && section !== 'users')) return {}
  const reading = read<Organization>(`/organizations/${String(organization_id)}`)
  const found = await (isDefault ? reading.catch(() => undefined) : reading)
  const isHidden = !found || found.settings.user_attributes?.some(({ visible }) => visible === 'nobody')
  return {
    ...(!isDefault && { organization: found?.slug }),
    ...(section === 'users' && { picture: undefined, ...(isHidden && { attributes: undefined }) }),
  }
}

/** Shows a card with code. Each child is a collapsed line, which a click expands. */
export const CodeCard = ({ children }: { children: ComponentChildren }) => (
  <section class="card about-change">
    <h2 class="unseen">{text.title}</h2>
    {children}
  </section>
)

/**
 * Shows an object as a part of a seed file, and as the call that reads it. Shows only the call if the caller
 * cannot read the slug of the object's organization, which the file needs.
 */
export const AsCode = ({ section, path, object }: { section: Section; path: string; object: object }) => {
  const values = object as Values
  const [more, setMore] = useState<Values>()
  const [problem, setProblem] = useState<Problem>()
  const [isOpen, setOpen] = useState(false)
  const load = () => {
    setProblem(undefined)
    readMore(section, values)
      .then(setMore)
      .catch(error => setProblem(asProblem(error)))
  }
  const call = <AsCurl text={curlOf('GET', path)} />
  if (values.organization_id !== DEFAULT_ORGANIZATION && !may('organizations:read'))
    return <CodeCard>{call}</CodeCard>
  return (
    <CodeCard>
      <details
        onToggle={({ currentTarget: { open } }) => {
          setOpen(open)
          if (open && !more) load()
        }}
      >
        <summary>{text.asYaml}</summary>
        {isPartial(values) ? (
          <p class="hint">{text.partial}</p>
        ) : problem ? (
          <Failure problem={problem} retry={load} />
        ) : more ? (
          <>
            <p class="hint">{text.yamlHint}</p>
            <Code text={seedOf(section, values, more)} />
          </>
        ) : (
          isOpen && <Loading />
        )}
      </details>
      {call}
    </CodeCard>
  )
}
