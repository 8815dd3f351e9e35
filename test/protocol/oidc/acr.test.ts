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
    // acr, factors, wanted, required -> what is due, level that the next factor has to reach
    ['1', none, 0, 1, 'nothing', 1],
    ['1', none, 1, 1, 'nothing', 1],
    ['1', none, 0, 2, 'enrol', 2],
    ['1', none, 2, 1, 'enrol', 2],
    ['1', none, 3, 1, 'enrol', 3],
    ['1', app, 0, 1, 'factor', 2],
    ['1', app, 0, 2, 'factor', 2],
    ['1', app, 3, 1, 'factor, enrol', 2],
    ['2', app, 3, 1, 'enrol', 3],
    ['2', app, 2, 2, 'nothing', 2],
    ['1', key, 0, 1, 'factor', 2],
    ['1', both, 2, 1, 'factor', 2],
    ['1', both, 3, 1, 'factor', 3],
    ['2', both, 3, 1, 'factor', 3],
    ['2', key, 0, 2, 'nothing', 2],
    ['phr', key, 3, 2, 'nothing', 3],
    // PEO-14: passkeys are required.
    ['1', none, 0, 3, 'enrol', 3],
    ['1', app, 0, 3, 'factor, enrol', 2],
    ['2', app, 0, 3, 'enrol', 3],
    ['1', both, 2, 3, 'factor', 3],
    ['2', both, 0, 3, 'factor', 3],
    ['phr', key, 0, 3, 'nothing', 3],
    // The factor was removed after it was proven. The removal affects only the next login.
    ['2', none, 0, 2, 'nothing', 2],
    ['phr', none, 3, 1, 'nothing', 3],
    // An unknown class counts as the weakest.
    ['0', none, 0, 1, 'nothing', 1],
    ['0', app, 0, 1, 'factor', 2],
  ] as const)('acr %s, %j, wanted %d, required %d: %s', (acr, factors, wanted, required, what, level) => {
    const { factor_due, enrol_due, ...rest } = requiredFactor({
      acr,
      factors,
      wanted,
      required,
      recovered: false,
      remembered: false,
    })
    const due = [...(factor_due ? ['factor'] : []), ...(enrol_due ? ['enrol'] : [])].join(', ')
    expect([due || 'nothing', rest.level]).toEqual([what, level])
  })

  test.each([
    ['1', key, 'enrol'],
    ['2', both, 'enrol'],
    ['1', none, 'enrol'],
    ['phr', both, 'nothing'],
  ] as const)('PEO-16 acr %s, %j, recovered: %s', (acr, factors, what) => {
    const { factor_due, enrol_due, level } = requiredFactor({
      acr,
      factors,
      wanted: 0,
      required: 1,
      recovered: true,
      remembered: true,
    })
    expect([factor_due, enrol_due ? 'enrol' : 'nothing', level]).toEqual([false, what, 3])
  })

  test.each([
    // factors, wanted, required -> factor due
    [app, 0, 2, false],
    [app, 0, 1, false],
    [app, 1, 2, false],
    [app, 2, 1, true],
    [app, 3, 2, true],
    [key, 0, 3, true],
    [both, 3, 1, true],
  ] as const)('RMB-01 remembered: %j, wanted %d, required %d: %p', (factors, wanted, required, due) => {
    const facts = { acr: '1', factors, wanted, required, recovered: false, remembered: true }
    const { factor_due, enrol_due } = requiredFactor(facts)
    expect([factor_due, enrol_due]).toEqual([due, factors === app && wanted === 3])
  })

  test('RMB-01 remembered browser of a user without a factor: the user must add one', () => {
    const facts = { acr: '1', factors: none, wanted: 0, required: 2, recovered: false, remembered: true }
    expect(requiredFactor(facts)).toMatchObject({ factor_due: false, enrol_due: true })
  })
})
