import { mostCommon } from './most-common.ts' with { type: 'macro' }

// The most frequent passwords. Attackers try them first. They take 75 KiB of the executable. The whole list
// of leaked passwords would take 380 KiB.
const leaked = mostCommon(10_000)

/**
 * Further common passwords, in lower case: words of several languages and of computing, names, and keyboard
 * patterns. Many of them are in `leaked` too. `checkChosen` also removes up to six digits and signs from the
 * end of a password, and looks up the shortened password. It thus refuses `Welcome2026!`, because the list
 * has `welcome`.
 */
const list = `
password passwort passwd pass passw0rd p@ssword p@ssw0rd pa55word pa$$word motdepasse contrasena contraseña senha wachtwoord
heslo haslo parola salasana losenord lösenord lozinka parool admin administrator adm1n root toor user guest test tester testing
demo default changeme change letmein letmein welcome willkommen bienvenue bienvenido login logon access secret geheim master
superuser supervisor manager system server service support office company temp temporary example sample hello hallo hola bonjour
qwerty qwertz azerty qwertyuiop qwertzuiop azertyuiop qwerty123456 asdf asdfgh asdfghjkl zxcv zxcvbn zxcvbnm yxcvbnm qazwsx
qazwsxedc 1qaz2wsx 1qaz2wsx3edc 1q2w3e 1q2w3e4r 1q2w3e4r5t q1w2e3 q1w2e3r4 q1w2e3r4t5 zaq12wsx zaq1zaq1 zaq1xsw2 qweasd
qweasdzxc qwer asdfasdf abcd abcdef abcdefg abcdefgh abc aaaaaa aaaaaaaa 1a2b3c 1a2b3c4d a1b2c3 a1b2c3d4 aa123456 abc123 123abc
iloveyou ilovegod iloveu loveyou lovely love loveme forever jetaime teamo tequiero sunshine princess princesa prinzessin dragon
monkey shadow superman batman spiderman ironman wolverine pokemon pikachu naruto starwars startrek matrix minecraft fortnite
roblox football futbol fussball soccer baseball basketball hockey tennis golf golfer cricket rugby chelsea arsenal liverpool
manchester barcelona realmadrid juventus bayern dortmund schalke lakers yankees cowboys steelers eagles rangers
michael jennifer jordan jessica ashley daniel thomas charlie andrew matthew robert joshua nicole samantha michelle hunter
george harley ginger pepper cookie buster maggie summer winter spring autumn sommer herbst frühling fruehling january february
march april june july august september october november december januar februar märz juni juli oktober dezember monday tuesday
wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag
computer internet google facebook youtube instagram twitter linkedin microsoft windows apple iphone samsung android linux ubuntu
oracle cisco github gitlab amazon netflix spotify paypal whatsapp telegram
whatever nothing trustno1 trustno ninja killer hacker fuckyou fuckme asshole bitch pussy sexy hottie babygirl babyboy angel
angels heaven jesus christ jesuschrist blessed freedom liberty america canada london paris berlin mexico india brazil australia
flower butterfly rainbow diamond silver golden orange purple yellow green banana chocolate cheese coffee peanut popcorn
mustang ferrari porsche mercedes corvette camaro toyota honda yamaha suzuki kawasaki merlin phoenix tigger tiger lion panther
falcon eagle dolphin mickey donald snoopy garfield scooby hannah amanda sophie oliver olivia emma maria anna laura sarah david
daddy mommy family friends friend bailey lucky happy smile cool awesome amazing beautiful gorgeous perfect crazy
gatehouse keycloak letmeinnow openup opensesame sesame mypassword yourpassword thepassword newpassword oldpassword nopassword
mypass userpass adminpass adminadmin rootroot testtest passpass passwordpassword secretsecret password1password welcomehome
00000 000000 0000000 00000000 000000000 0000000000 11111 111111 1111111 11111111 111111111 1111111111 112233 11223344 1122334455 121212
12121212 123123 123123123 123321 1234 12341234 12344321 12345 1234512345 123456 1234567 12345678 123456789 1234567890 12345678910
123454321 1234554321 123456654321 123654 123789 131313 135790 13579 147258 147258369 147852 159357 159753 159159 192837 202020
20202020 212121 222222 22222222 232323 246810 252525 258456 333333 33333333 456456 456789 444444 44444444 555555 55555555 654321
7654321 87654321 987654321 9876543210 666666 66666666 696969 741852 741852963 777777 7777777 77777777 789456 789456123 852456
888888 88888888 963852 963852741 987654 98765432 999999 99999999 999999999 101010 10101010 102030 1020304050 010203 01020304
0987654321 098765 0123456 0123456789 password1 password12 password123 password1234 welcome1 welcome123 qwerty1 qwerty12 qwerty123
qwerty1234 admin123 admin1234 admin12345 root123 test123 test1234 user123 letmein1 iloveyou1 princess1 dragon1 monkey1 sunshine1
football1 baseball1 superman1 master1 shadow1 michael1 abc12345 abcd1234 asdf1234 qwer1234 pass123 pass1234 p4ssw0rd 1password
123qwe 123qweasd 123qwe123 1234qwer 12345qwert qwe123 qwe1234 asd123 zxc123 zxcvbnm1 123abc123 111222 111222333 aaa111 q1q1q1q1
`

let words: ReadonlySet<string> | undefined

/** Returns the list of common passwords, in lower case. */
export const commonPasswords = (): ReadonlySet<string> => {
  words ??= new Set([...leaked.split('\n'), ...list.trim().split(/\s+/)])
  return words
}
