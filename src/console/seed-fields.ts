// Prints the default of each field of a seed file, for the build of the console. The output is a JSON object.
// Each default in it is a JSON text. A field without a default has ''.
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

/** Defaults of the fields of each section. Each type of provider has a section of its own. */
const sections = seedSections.flatMap((section): [string, Record<string, string>][] => {
  const entry = Seed.shape[section].unwrap().element
  if (!('options' in entry)) return [[section, fieldsOf(entry.shape)]]
  return entry.options.map(({ shape }) => [`${section}.${shape.type.value}`, fieldsOf(shape)])
})

console.log(JSON.stringify(Object.fromEntries(sections)))
