import { OAuthError } from '#src/protocol/oauth/error.ts'

/** The code of the refusal that `act` throws, `none` when it goes through; any other error is a failure of the test. */
export const refusal = (act: () => unknown): string => {
  try {
    act()
    return 'none'
  } catch (error) {
    if (error instanceof OAuthError) return error.code
    throw error
  }
}
