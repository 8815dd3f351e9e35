import { describe, expect, test } from 'bun:test'
import { answeredAcr, type FactorType, levelOf, requiredFactor, wantedLevel } from '#src/protocol/oidc/acr.ts'

const all = ['1', '2', 'phr']

test.each([
  [[], all, 0],
  [['2'], all, 2],
  [['phr'], all, 3],
  [['phr', '2'], all, 2],
  [['urn:x', 'phr'], all, 3],
  [['urn:x', '', '02', 'PHR'], all, 0],
  [['phr'], ['1', '2'], 0],
])('O-52 acr_values %j of %j request level %d', (values, supported, level) => {
  expect(wantedLevel(values, supported)).toBe(level)
})

test.each([
  [[], 'phr', 'phr'],
  [['2'], '2', '2'],
  [['2'], 'phr', '2'],
  [['1', '2'], 'phr', '2'],
  [['phr', '2'], '2', '2'],
  [['phr'], '1', '1'],
  [['junk'], '2', '2'],
  [['1'], '2', '1'],
])('acr_values %j and a login of class %s return %s', (values, acr, answer) => {
  expect(answeredAcr(values, acr)).toBe(answer)
})

test('levels', () => {
  expect(['1', '2', 'phr', '', '3', '0'].map(levelOf)).toEqual([1, 2, 3, 0, 0, 0])
})

describe('the next step of a login', () => {
  const none: FactorType[] = []
  const app: FactorType[] = ['totp']
  const key: FactorType[] = ['passkey']
  const both: FactorType[] = ['totp', 'passkey']
  test.each([
    // acr, factors, wanted, required -> what, up to which level
    ['1', none, 0, false, 'nothing', 1],
    ['1', none, 1, false, 'nothing', 1],
    ['1', none, 0, true, 'enrol', 2],
    ['1', none, 2, false, 'enrol', 2],
    ['1', none, 3, false, 'enrol', 3],
    ['1', app, 0, false, 'factor', 2],
    ['1', app, 0, true, 'factor', 2],
    ['1', app, 3, false, 'factor, enrol', 2],
    ['2', app, 3, false, 'enrol', 3],
    ['2', app, 2, true, 'nothing', 2],
    ['1', key, 0, false, 'factor', 2],
    ['1', both, 2, false, 'factor', 2],
    ['1', both, 3, false, 'factor', 3],
    ['2', both, 3, false, 'factor', 3],
    ['2', key, 0, true, 'nothing', 2],
    ['phr', key, 3, true, 'nothing', 3],
    // The factor went after it was proven: the next login will tell.
    ['2', none, 0, true, 'nothing', 2],
    ['phr', none, 3, false, 'nothing', 3],
    // A class that is not ours is the weakest.
    ['0', none, 0, false, 'nothing', 1],
    ['0', app, 0, false, 'factor', 2],
  ] as const)('acr %s, %j, wanted %d, required %p: %s', (acr, factors, wanted, required, what, level) => {
    const { factor_due, enrol_due, ...rest } = requiredFactor({ acr, factors, wanted, required })
    const due = [...(factor_due ? ['factor'] : []), ...(enrol_due ? ['enrol'] : [])].join(', ')
    expect([due || 'nothing', rest.level]).toEqual([what, level])
  })
})
