// files.h -- files that are written: whole or not there at all, and never in the place of what is read.
//
//   gm_file_create   NAME.k3x9q2.part, made anew beside NAME      gm_file_rename   to NAME      gm_file_drop   removed
//
// gmc and the programs it makes use it. Whoever opens a file to read says so (gm_file_is_read): what then stands under an output's name is
// compared with all of these, by device and inode, since one file has many names.
#ifndef GM_FILES_H
#define GM_FILES_H

#include <stdbool.h>
#include <stdio.h>

typedef struct GmFile {
    FILE *to;                  // NULL once it is closed
    char *path, *real, *part;  // its name as it was given, without symbolic links, and until it is finished
    bool kept;                 // what is under the temporary name stays
} GmFile;

// At the start of a program: nothing is known to be read, descriptors 0 to 2 are open, the program itself counts as read, and a signal that
// ends it removes what is not finished.
void gm_files_start(void);
void gm_file_is_read(const char *path);
// Why nothing may be written under this name, in words for after a colon; NULL: it may.
const char *gm_file_refused(const char *path);

// Nothing has this name, and --overwrite was not given: what comes into being there meanwhile is not replaced.
void gm_file_was_absent(const char *path);
// Where symbolic links lead, or the name itself; the caller frees it.
char *gm_file_real(const char *path);
// Whether a run that goes on writes NAME.part: then why nothing else may. If not, and `remove`, what one that was killed has left there and
// as NAME.next.part is removed.
const char *gm_file_left(const char *path, bool remove);

// All return NULL, or why not, as above.
const char *gm_file_create(GmFile *f, const char *path);
// The same by a name that every run of this path takes, NAME.next.part: what a run that was killed has left there is replaced.
const char *gm_file_create_next(GmFile *f, const char *path);
const char *gm_file_close(GmFile *f);  // what was written is in the file under its temporary name, or it is dropped
// Its temporary name becomes NAME.part, which no signal removes, in the place of what is called so. Why not: another run that goes on still
// writes there.
const char *gm_file_settle(GmFile *f);
const char *gm_file_rename(GmFile *f);  // after gm_file_close. When it fails, the file stays under its temporary name
const char *gm_file_replace(const char *made, const char *path);  // renames a file made otherwise
void gm_file_keep(GmFile *f);                                     // leaves it under its temporary name
// the end of every GmFile, also of an empty one: removes what has not got its name and is not kept
void gm_file_drop(GmFile *f);

// A new folder NAME.k3x9q2.part beside a file, for this user alone and temporary; NULL: errno says why not. The caller frees its name.
char *gm_folder_create(const char *beside);
// Names of files, and of folders, that a signal removes: the last one first.
void gm_file_temporary(const char *path);
void gm_file_settled(const char *path);         // it is no longer temporary
void gm_files_remove(void);                     // all of them; safe in a handler of signals
extern void (*volatile gm_files_ending)(void);  // what else a signal does before it ends the program, or NULL

#endif
