import { expect, test } from 'bun:test'
import type { z } from 'zod'
import type { AuditEvent as ServersEvent } from '#src/audit/schema.ts'
import { endpoints } from '#src/dev/endpoints.ts'
import type { Fault as ServersFault } from '#src/dev/fault-schema.ts'
import { badTokenNames, type MintInput } from '#src/dev/mint-schema.ts'
import type { IssuedRecord, ReceivedRequest as ServersRequest } from '#src/dev/recorder.ts'
import type { UserAnswer as ServersUser } from '#src/directory/users/schema.ts'
import { BAD_TOKENS } from '#src/resource-server/bad-tokens.ts'
import type { SeedInput } from '#src/seed/schema.ts'
import type {
  AuditEvent,
  BadTokenName,
  Fault,
  IssuedToken,
  KeyState,
  MintOptions,
  ReceivedRequest,
  Seed,
  User,
} from '#src/testing/types.ts'
import type { KeyState as ServersKey } from '#src/tokens/manual-keys.ts'

/** Checks at compile time that the public types of `testing` match the types of the server. */
type Fits<Given, Wanted> = [Given] extends [Wanted] ? true : never

/** An entry of a section that the public type describes field by field. */
type Entry<S, Name extends keyof S> = NonNullable<S[Name]> extends readonly (infer E)[] ? E : never

const checks: true[] = [
  true satisfies Fits<Pick<Seed, 'users' | 'groups' | 'clients'>, SeedInput>,
  true satisfies Fits<Exclude<keyof SeedInput, '$schema'>, keyof Seed>,
  true satisfies Fits<keyof Entry<SeedInput, 'organizations'>, keyof Entry<Seed, 'organizations'>>,
  true satisfies Fits<keyof Entry<SeedInput, 'roles'>, keyof Entry<Seed, 'roles'>>,
  true satisfies Fits<keyof Entry<SeedInput, 'users'>, keyof Entry<Seed, 'users'>>,
  true satisfies Fits<keyof Entry<SeedInput, 'groups'>, keyof Entry<Seed, 'groups'>>,
  // A test gives `client_secret`. `client_secret_hash` is for files that are kept.
  true satisfies Fits<
    Exclude<keyof Entry<SeedInput, 'clients'>, 'client_secret_hash'>,
    keyof Entry<Seed, 'clients'>
  >,
  true satisfies Fits<Omit<MintOptions, 'claims'>, MintInput>,
  true satisfies Fits<Fault, z.input<typeof ServersFault>>,
  true satisfies Fits<ServersEvent, AuditEvent>,
  true satisfies Fits<ServersUser, User>,
  true satisfies Fits<ServersRequest, ReceivedRequest>,
  true satisfies Fits<IssuedRecord, IssuedToken>,
  true satisfies Fits<ServersKey, KeyState>,
]

const names: Record<BadTokenName, true> = {
  expired: true,
  'not-yet-valid': true,
  'wrong-iss': true,
  'wrong-aud': true,
  'wrong-signature': true,
  'unknown-kid': true,
  'alg-none': true,
  'hs256-with-public-key': true,
  'id-token': true,
  'missing-claim': true,
  tampered: true,
}
const short: Record<Exclude<Fault['endpoint'], `/${string}`>, true> = {
  authorize: true,
  token: true,
  revoke: true,
  introspect: true,
  userinfo: true,
  logout: true,
  discovery: true,
  jwks: true,
}

test('the published types equal those of the server', () => {
  expect(checks).not.toContain(false as never)
  expect(Object.keys(names)).toEqual([...badTokenNames])
  expect(Object.keys(BAD_TOKENS)).toEqual([...badTokenNames])
  expect(Object.keys(short)).toEqual(Object.keys(endpoints))
})
