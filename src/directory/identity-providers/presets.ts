import { apple } from './presets/apple.ts'
import { discord } from './presets/discord.ts'
import { github } from './presets/github.ts'
import { gitlab } from './presets/gitlab.ts'
import { google } from './presets/google.ts'
import { microsoft } from './presets/microsoft.ts'

/** What well-known providers fix, by the name of the preset; `claims` are their words for our fields. */
const presets: Record<string, Preset> = { google, microsoft, apple, github, gitlab, discord }

/** Our fields, and the whole name of a person where a provider does not take it apart. */
export type Claims = Partial<Record<Field | 'name', readonly string[]>>

/** What we take over from a provider. */
export const fields = [
  'subject',
  'username',
  'email',
  'email_verified',
  'first_name',
  'last_name',
  'roles',
] as const
export type Field = (typeof fields)[number]

interface Preset {
  settings: Readonly<Record<string, unknown>>
  claims: Claims
  /** Of plain OAuth 2.0, which has no parameter for it: what makes the provider ask the person, not answer in silence. */
  reauthenticate?: Readonly<Record<string, string>>
}

/** The preset of that name; nothing for a provider without one. */
export const findPreset = (name: unknown): Preset | undefined =>
  typeof name === 'string' && Object.hasOwn(presets, name) ? presets[name] : undefined
