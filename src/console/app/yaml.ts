import { inDoubleQuotes } from '#src/lib/quoted.ts'

/**
 * Words that need quotes, because YAML 1.1 or 1.2 reads them as a boolean or null:
 * https://yaml.org/spec/1.2.2/#103-core-schema
 */
const special = /^(?:true|false|null|yes|no|on|off|y|n)$/i

const textOf = (text: string): string =>
  /^[A-Za-z_][\w./@-]*(?: [\w./@-]+)*$/.test(text) && !special.test(text) ? text : inDoubleQuotes(text)

const scalarOf = (value: unknown): string =>
  typeof value === 'string' ? textOf(value) : JSON.stringify(value)

/** Maximum length of a list that is written on one line, in characters. */
const LINE = 60

const isSimple = (value: unknown): boolean => typeof value !== 'object' || value === null

/**
 * Returns a value as the YAML that follows its key: a space and the value, or indented lines if the value
 * does not fit on one line.
 */
const below = (value: unknown, indent: string): string => {
  if (isSimple(value)) return ` ${scalarOf(value)}`
  if (Array.isArray(value)) {
    const flow = `[${value.map(scalarOf).join(', ')}]`
    if (value.every(isSimple) && flow.length <= LINE) return ` ${flow}`
    return value.map(item => `\n${indent}-${below(item, `${indent}  `).replace(/^\n\s*/, ' ')}`).join('')
  }
  const entries = Object.entries(value as object)
  if (entries.length === 0) return ' {}'
  return entries.map(([name, part]) => `\n${indent}${textOf(name)}:${below(part, `${indent}  `)}`).join('')
}

/** Returns objects as a list in YAML below the key `name`. A seed file has the same form. */
export const yamlOf = (name: string, items: object[]): string => `${name}:${below(items, '  ')}\n`
