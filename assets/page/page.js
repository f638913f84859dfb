import { offerCopies } from './copy.js'
import { followRooms } from './rooms.js'

followRooms()
offerCopies()
