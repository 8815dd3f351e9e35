import { OAuthError } from '#src/protocol/oauth/error.ts'

/** Returns the code of the refusal that `act` throws, or `none`. Any other error fails the test. */
export const refusal = (act: () => unknown): string => {
  try {
    act()
    return 'none'
  } catch (error) {
    if (error instanceof OAuthError) return error.code
    throw error
  }
}
