import { apple } from './presets/apple.ts'
import { discord } from './presets/discord.ts'
import { github } from './presets/github.ts'
import { gitlab } from './presets/gitlab.ts'
import { google } from './presets/google.ts'
import { microsoft } from './presets/microsoft.ts'

/**
 * Settings of well-known providers, by preset name. `claims` lists the names of the claims for each user
 * field.
 */
const presets: Record<string, Preset> = { google, microsoft, apple, github, gitlab, discord }

/**
 * Names of claims, by user field. `name` stands for the full name, for providers that send no separate first
 * and last names.
 */
export type ClaimNames = Partial<Record<UserField | 'name', readonly string[]>>

/** User fields that are taken from a provider. */
export const userFields = [
  'subject',
  'username',
  'email',
  'email_verified',
  'first_name',
  'last_name',
  'roles',
] as const
export type UserField = (typeof userFields)[number]

interface Preset {
  settings: Readonly<Record<string, unknown>>
  claims: ClaimNames
  /**
   * Authorization parameters that replace `prompt=login` when a new authentication is due: OAuth 2.0 has no
   * standard parameter for this, and not every OpenID provider accepts `login`.
   */
  reauthenticate?: Readonly<Record<string, string>>
}

/** Returns the preset with this name. Returns undefined for an unknown name. */
export const findPreset = (name: unknown): Preset | undefined =>
  typeof name === 'string' && Object.hasOwn(presets, name) ? presets[name] : undefined
