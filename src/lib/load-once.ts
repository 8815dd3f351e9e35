/**
 * Returns a function that runs `load` at its first call and then returns the same result. After a failure,
 * `load` runs again at the next call, because a cause such as too many open files may have ended by then. If
 * the failure were kept, every later request would fail until the server restarts.
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
