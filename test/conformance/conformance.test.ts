import { describe, expect, test } from 'bun:test'
import { checklist, notBuiltYet as idsNotBuiltYet, notATest } from './checklist.ts'
import { decisions } from './decisions.ts'
import { isThere, NOTHING, namedIds, type Tables } from './pins.ts'
import { specification } from './specification.ts'

/** Rows of what is still being built; empty when all is. */
const notBuiltYet = [
  'Event types: user.mfa_enabled / mfa_disabled',
  '4 Users, sessions, logins: passkeys',
  '7 Running it: GATEHOUSE_SMTP_URL, GATEHOUSE_MAIL_FROM',
]

const rowsOf = (tables: Tables) =>
  Object.entries(tables).flatMap(([table, rows]) =>
    rows.map(([row, pin]) => ({ name: `${table}: ${row}`, pin })),
  )
const rows = [...rowsOf(specification), ...rowsOf(decisions)]

describe('the rows of the specification and its decisions', () => {
  test('each name a test that exists', () => {
    const lost = rows.filter(({ pin }) => pin !== NOTHING && !isThere(pin))
    expect(lost.map(({ name, pin }) => `${name} -> ${pin}`)).toEqual([])
  })

  test('only those listed as not built yet name none', () => {
    const open = rows.filter(({ pin }) => pin === NOTHING)
    expect(open.map(({ name }) => name).sort()).toEqual(notBuiltYet.toSorted())
  })

  test('stand in the list once', () => {
    const names = rows.map(({ name }) => name)
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
  })
})

describe('the rows of the security checklist', () => {
  const ids = Object.entries(checklist).flatMap(([letter, count]) =>
    Array.from({ length: count }, (_, i) => `${letter}-${String(i + 1).padStart(2, '0')}`),
  )

  test('each begin the title of a test, but those that are not built yet or no test', () => {
    const left = [...idsNotBuiltYet, ...Object.keys(notATest)].sort()
    expect(ids.filter(id => !namedIds.has(id)).sort()).toEqual(left)
  })

  test('no title names a row that does not exist', () => {
    expect([...namedIds].filter(id => !ids.includes(id))).toEqual([])
  })
})
