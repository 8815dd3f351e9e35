import { signal } from '@preact/signals'

/** The caller of the admin API. */
export interface Me {
  instance: boolean
  permissions: string[]
}

/** Set before the first screen is shown. */
export const me = signal<Me | undefined>(undefined)

/** True when the caller has the permission. */
export const may = (permission: string): boolean => me.value?.permissions.includes(permission) ?? false

/** True when the caller has the permission and may act on all organizations and on the server. */
export const mayOnServer = (permission: string): boolean => (me.value?.instance ?? false) && may(permission)
