import { signal } from '@preact/signals'

/** The caller of the admin API. */
export interface Me {
  instance: boolean
  permissions: string[]
}

/** Set before the first screen is shown. */
export const me = signal<Me | undefined>(undefined)

/** Permissions that have an effect only for administrators of the default organization. */
const ON_SERVER = /^(?:settings:|organizations:(?:create|delete)$)/

/** Permissions whose calls also need `events:read`. */
const WITH_EVENTS = /^webhooks:(?:create|update)$/

/** True when the caller may make the calls that need the permission. */
export const may = (permission: string): boolean =>
  me.value?.permissions.includes(permission) === true &&
  (me.value.instance || !ON_SERVER.test(permission)) &&
  (!WITH_EVENTS.test(permission) || may('events:read'))

/** True when the caller may list the organizations. Other callers may read at most their own organization. */
export const mayListOrganizations = (): boolean => (me.value?.instance ?? false) && may('organizations:read')

/** True when the caller may change or delete the object with this path in the API. */
export const mayOn = (action: 'update' | 'delete', path: string): boolean =>
  may(`${path.split('/')[1]?.replace('-', '_')}:${action}`)
