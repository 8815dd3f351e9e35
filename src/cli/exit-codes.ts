export const exitCodes: [code: string, meaning: string][] = [
  ['0', 'done'],
  ['1', 'failed; for check: damage was found; for doctor: a check failed'],
  ['2', 'wrong command line or setting'],
  ['75', 'in use by another server: try again later'],
  ['78', 'database or master key cannot be used'],
]
