import { path } from './router.ts'
import { words } from './words.ts'

const { nav } = words

type Member = readonly [href: string, label: string]

/**
 * Related screens that need the same permission. The menu shows only the first list of each family, so the
 * menu stays short. Links on the screen of a list lead to the other lists of its family. The screens of looks
 * have no list: a button on the screen of an organization leads to its looks.
 */
const families: readonly (readonly Member[])[] = [
  [
    ['/console/users', nav.users],
    ['/console/invitations', nav.invitations],
    ['/console/registrations', nav.registrations],
  ],
  [
    ['/console/clients', nav.clients],
    ['/console/dynamic-clients', nav.dynamicClients],
  ],
  [
    ['/console/organizations', nav.organizations],
    ['/console/looks', words.looks.title],
  ],
]

const isAt = (href: string): boolean => path.value === href || path.value.startsWith(`${href}/`)

/**
 * True when the current screen is that of the menu entry with this path, is below it, or is in its family.
 * For a caller who sees only one organization, the entry leads to the screen of that organization, which is
 * below the family's first list. No screen is below the overview.
 */
export const isWithin = (href: string): boolean =>
  href === '/console'
    ? path.value === href
    : isAt(href) ||
      (families.find(([first]) => first && href.startsWith(first[0]))?.some(([each]) => isAt(each)) ?? false)

/** Shows the links between the lists of the current family. */
export const Tabs = () => {
  const family = families.find(members => members.some(([href]) => path.value === href)) ?? []
  return (
    <nav class="tabs" aria-label={family[0]?.[1]}>
      {family.map(([href, label]) => (
        <a key={href} href={href} aria-current={isAt(href) ? 'page' : undefined}>
          {label}
        </a>
      ))}
    </nav>
  )
}
