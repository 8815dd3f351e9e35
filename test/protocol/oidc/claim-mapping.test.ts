import { expect, test } from 'bun:test'
import { mappedClaims } from '#src/protocol/oidc/claim-mapping.ts'

const sourceOf = (x: unknown) => ({ client: { attributes: { x, note: 'y' } }, groups: [], roles: [] })

test('CLM-07 a value is measured once, even when the 2,000 claims of an API take it', () => {
  let measured = 0
  const large = {
    toJSON: () => {
      measured++
      return 'x'.repeat(64 * 1024)
    },
  }
  const names = Array.from({ length: 2000 }, (_, i) => [`claim${i}`, 'client.attributes.x'])
  const mapping = Object.fromEntries([...names, ['note', 'client.attributes.note']])
  expect(mappedClaims(mapping, [], sourceOf(large))).toEqual({ note: 'y' })
  expect(measured).toBe(1)
})

test('CLM-07 a claim counts with its name, as it stands in JSON', () => {
  const fits = 'é'.repeat((4096 - '{}{"name":""}'.length - 1) / 2)
  for (const [value, claims] of [
    [`${fits}x`, { name: `${fits}x` }],
    [`${fits}xx`, {}],
  ] as const)
    expect(mappedClaims({ name: 'client.attributes.x' }, [], sourceOf(value))).toEqual(claims)
})
