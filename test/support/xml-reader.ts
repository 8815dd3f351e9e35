import { openXmlReader } from '#src/directory/identity-providers/xml-reader.ts'

/** One process reads XML for all servers of a test file, because its start takes longer than most tests. */
export const xmlReader = openXmlReader()
