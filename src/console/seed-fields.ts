// Prints the default of each field of a seed file, for the build of the console. The output is a JSON object
// of JSON texts, with '' for a field without a default.
import { Seed, seedSections } from '#src/seed/schema.ts'

interface Shape {
  [name: string]: { safeParse(value: unknown): { success: boolean; data?: unknown } }
}

const fieldsOf = (shape: Shape): Record<string, string> =>
  Object.fromEntries(
    Object.entries(shape).map(([name, field]) => {
      const { success, data } = field.safeParse(undefined)
      return [name, (success && JSON.stringify(data)) || '']
    }),
  )

/** Defaults of the fields of each section; providers have a section for each type. */
const sections = seedSections.flatMap((section): [string, Record<string, string>][] => {
  const entry = Seed.shape[section].unwrap().element
  if (!('options' in entry)) return [[section, fieldsOf(entry.shape)]]
  return entry.options.map(({ shape }) => [`${section}.${shape.type.value}`, fieldsOf(shape)])
})

console.log(JSON.stringify(Object.fromEntries(sections)))
