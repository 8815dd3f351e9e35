/**
 * Returns a function that runs `load` at its first call and then returns the same result. A load that failed
 * runs again at the next call: the cause may have passed, such as too many open files. A kept failure would
 * refuse every later request until the server restarts.
 */
export const loadOnce = <T>(load: () => Promise<T>): (() => Promise<T>) => {
  let loading: Promise<T> | undefined
  return () => {
    loading ??= load().catch(error => {
      loading = undefined
      throw error
    })
    return loading
  }
}
