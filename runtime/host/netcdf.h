// netcdf.h -- what the writer of NetCDF files (netcdf.c) and their reader (netcdf_read.c) share: the library, numbers of its interface, and
// the attributes in which NAME.nc has what the CSV files of the same run say.
#ifndef GM_NETCDF_H
#define GM_NETCDF_H

#include "model.h"

enum { NC_GLOBAL = -1, NC_FILL_INT = -2147483647 };
typedef enum { NC_BYTE = 1, NC_INT = 4, NC_FLOAT = 5, NC_DOUBLE = 6, NC_STRING = 12 } NcType;

// Of the file: the names of the columns, the lines at the head of a CSV file, and the lines below the names, of all chains.
static const char gm_netcdf_header[] = "csv_header", gm_netcdf_settings[] = "csv_settings", gm_netcdf_notes[] = "csv_notes";
// Of a variable: the column of its first element, if it is a whole array, or those of all elements in a list; from 1.
static const char gm_netcdf_columns[] = "csv_columns";

void *gm_netcdf_library(void);  // netcdf-c, opened once; NULL: it is not found
void gm_netcdf_not_found(const char *wanted_by);

#endif
