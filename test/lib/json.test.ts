import { expect, test } from 'bun:test'
import { isNestedDeeply } from '#src/lib/json.ts'

test.each([
  ['['.repeat(64) + ']'.repeat(64), false],
  ['['.repeat(65) + ']'.repeat(65), true],
  ['{"a":'.repeat(65), true],
  [`[${'[],'.repeat(100)}{}]`, false],
  [JSON.stringify('['.repeat(100)), false],
  [JSON.stringify(`"\\${'['.repeat(100)}`), false],
  [`["\\\\",${'['.repeat(64)}`, true],
])('levels count arrays and objects, not characters in strings: %s', (text, isDeep) => {
  expect(isNestedDeeply(text)).toBe(isDeep)
})
