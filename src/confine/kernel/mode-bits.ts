/** What of the mode of a file is no kind: its permissions and the three bits before them (inode(7)). */
export const PERMISSIONS = 0o7777;

export const SET_USER_ID = 0o4000;
export const SET_GROUP_ID = 0o2000;
