/** The rows of the security checklist: how many of each letter there are. */
export const checklist = { O: 72, S: 36, R: 24, M: 13 } as const

/** Built by nobody yet. */
export const notBuiltYet: string[] = []

/** Figures that a script or the benchmark measures, with what stands in for them in the suite. */
export const notATest: Record<string, string> = {
  'R-09':
    'no schema was ever released before this one; atomic migrations and refused newer ones are in storage/migrate',
  'R-15': 'a figure of the benchmark at a million users',
}
