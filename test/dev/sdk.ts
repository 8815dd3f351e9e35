export { createVerifier } from '#src/resource-server/index.ts'
export { BAD_TOKENS, type BadToken } from '#src/resource-server/testing.ts'
