/**
 * Exit codes with their meanings. 75 and 78 are EX_TEMPFAIL and EX_CONFIG of sysexits.h. A service manager
 * tries again after 75, but not after 2 and 78, because a restart does not mend these failures.
 * `StorageError` and `ConfigError` decide which failure gets which code.
 */
export const exitCodes: [code: string, meaning: string][] = [
  ['0', 'done'],
  ['1', 'failed; for check: damage was found; for doctor: a check failed'],
  ['2', 'wrong command line or setting'],
  ['75', 'temporary failure, such as another server on the same data: try again later'],
  ['78', 'database or master key cannot be used'],
]
